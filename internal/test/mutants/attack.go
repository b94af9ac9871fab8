package main

// attack has rows for what an attacker had found open: make attack, a small run of it at least, has to find it open again.
var attack = []mutant{
	{"paths of strangers are not written to", replace("found &&", "true || found &&"), "./internal/test/attack", "TestAttack/archives"},
	{"bytes of the cache have their digest", never, "./internal/test/attack", "TestAttack/registry"},
	{"all signatures are tried", replace("i == maxSignatures", "i == 16"), "./internal/test/attack", "TestAttack/registry"},
	{"a policy that requires signatures", never, "./internal/test/attack", "TestAttack/policy"},
	{"signature of this manifest", never, "./internal/test/attack", "TestAttack/policy"},
	{"contents in the engine's memory", replace("== OwnerEngine", "== 0"), "./internal/test/attack", "TestAttack/fallbacks"},
	{"extent of a pointer", replace(" || size > whole-p.Offset", ""), "./internal/test/attack", "TestAttack/stages"},
	{"graph that embeds itself", replace(">=", ">"), "./internal/test/attack", "TestAttack/traces"},
	{"graph that two nodes embed", never, "./internal/test/attack", "TestAttack/traces"},
	{"variables of single runs", replace("!slices.Contains(inherited, name)", "false"), "./internal/test/attack", "TestAttack/environment"},
	{"guard notices the end of its command", becomes("select {}"), "./internal/test/attack", "TestAttack/kills"},
	{"folders of killed commands", always, "./internal/test/attack", "TestAttack/kills"},
	{"names in tables are text", replace("Line(v)", "v"), "./internal/test/attack", "TestAttack/screens"},
	{"escapes in JSON", always, "./internal/test/attack", "TestAttack/screens"},
	{"escapes in the engine's lines", becomes(`_, _ = os.Stderr.WriteString("medusa: native start: " + f.Error() + "\n")`),
		"./internal/test/attack", "TestAttack/screens"},
	{"KV cache large enough for its tensors", never, "./artifacts", "TestKVProfileHoldsTheTensors"},
	{"engine that outgrows its KV cache", never, "./internal/test/attack", "TestAttack/fallbacks"},
}
