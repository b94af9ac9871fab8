package main

// attack has rows for holes that an attacker had found. make attack, at least a small run of it, has to find each hole that is opened
// again. A small run seldom reaches two of them: the tests of their packages find those.
var attack = []mutant{
	{"paths of strangers are not written to", replace("found &&", "true || found &&"), "./test/attack", "TestAttack/archives"},
	{"bytes of the cache have their digest", never, "./test/attack", "TestAttack/registry"},
	{"all signatures are tried", replace("i == maxSignatures", "i == 16"), "./test/attack", "TestAttack/registry"},
	{"a policy that requires signatures", never, "./test/attack", "TestAttack/policy"},
	{"signature of this manifest", never, "./test/attack", "TestAttack/policy"},
	{"contents in the engine's memory", replace("== OwnerEngine", "== 0"), "./test/attack", "TestAttack/fallbacks"},
	{"extent of a pointer", replace(" || size > whole-p.Offset", ""), "./graphir", "TestValidateExtents"},
	{"graph that embeds itself", replace(">=", ">"), "./test/attack", "TestAttack/traces"},
	{"graph that two nodes embed", never, "./test/attack", "TestAttack/traces"},
	{"variables of single runs", replace("!slices.Contains(inherited, name)", "false"), "./test/attack", "TestAttack/environment"},
	{"guard notices the end of its command", becomes("select {}"), "./test/attack", "TestAttack/kills"},
	{"folders of killed commands", always, "./test/attack", "TestAttack/kills"},
	{"names in tables are text", replace("Line(v)", "v"), "./test/attack", "TestAttack/screens"},
	{"escapes in JSON", always, "./test/attack", "TestAttack/screens"},
	{"escapes in the engine's lines", becomes(`println("medusa: native start: " + f.Error())`),
		"./test/attack", "TestAttack/screens"},
	{"KV cache large enough for its tensors", never, "./artifacts", "TestKVProfileHoldsTheTensors"},
	{"engine that outgrows its KV cache", never, "./test/attack", "TestAttack/fallbacks"},
	{"memory inside of other memory", never, "./test/attack", "TestAttack/traces"},
	{"memory that wraps around", always, "./test/attack", "TestAttack/traces"},
	{"words beside a layout are compared", never, "./test/attack", "TestAttack/traces"},
	{"pointers beyond 4 GiB of their memory", replace("addr - last.Addr", "uint64(uint32(addr - last.Addr))"),
		"./test/attack", "TestAttack/traces"},
	{"a disk that is full when the status is written", replace("full != nil", `full != nil && o.Status != ""`),
		"./test/attack", "TestAttack/disks"},
}
