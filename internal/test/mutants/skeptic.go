package main

import "strings"

// skeptic has rows that a skeptic would try: a comparison that is off by one or turned round, a condition that is dropped, a
// field that is left out, a unit that is wrong.
var skeptic = []mutant{
	// Relocation.
	{"words outside of all memory", replace("a < p.lo || a > p.hi", "a <= p.lo || a >= p.hi"), "./materialize/compile", "TestUnprovenWords"},
	{"offset in both runs", replace("x == y", "x.Index == y.Index"), "./materialize/compile", "TestUnprovenWords"},
	{"one meaning in both runs", replace("matches == 1", "matches >= 1"), "./materialize/compile", "TestTouchingAllocationsAreAmbiguous"},
	{"half of an old address", never, "./materialize/compile", "TestHalfOfAnAddress"},
	{"words are aligned", replace("o%8 != 0 || ", ""), "./materialize/compile", "TestStructThatBeginsBetweenWords"},
	{"first byte of memory", replace("<= addr", "< addr"), "./materialize/compile", "TestUnprovenWords|TestPointersBecomeIndirect"},
	{"end of a named tensor", replace("addr-s.named[k].addr < s.named[k].size", "addr-s.named[k].addr <= s.named[k].size"),
		"./materialize/compile", "TestPointersIntoAFrameworksBlocks"},
	{"size check of the replayed sequence", replace("uint32(a.Kind) == allocs[got.Alloc].Kind && ", ""), "./restore/memory", "TestComparePrefix"},
	{"allocation of the capture phase made by the engine", replace(" && (want.Free || spec.Allocations[want.Alloc].Owner == graphir.OwnerEngine)", ""), "./restore/memory", "TestComparePrefix"},
	{"allocation that is missing", never, "./restore/memory", "TestComparePrefix"},
	{"what is freed", replace("want == got", "want.Free == got.Free"), "./restore/memory", "TestComparePrefix"},
	{"memory that is gone has no address", replace(" && a.Live != 0", ""), "./restore/memory", "TestEngineMemory"},
	{"pointer to what does not exist", never, "./restore/memory", "TestEngineMemory"},
	{"places before what is freed are full", never, "./interpose", "TestExactAddressesRepeat"},

	// Contents.
	{"bytes that may be why a replay differs", skip, "./internal/test/e2e", "TestMovedPointerOfAStruct"},
	{"memory that nobody owns at ready", replace("digest.Temporary", "left"), "./internal/test/e2e", "TestGraphReadsWhatNobodyOwns"},
	{"memory that nobody owns at ready", replace("digest.Temporary", "digest.Other"), "./internal/test/e2e", "TestLeftByEagerSteps/returned"},
	{"memory of the capture phase in the engine's segments", never, "./restore/check", "TestSpansOfVacantMemory"},
	{"memory that nobody owns in either run", replace("common(m.a.run.freeIn(readyA, i), m.b.run.freeIn(readyB, i))", "append(m.a.run.freeIn(readyA, i), m.b.run.freeIn(readyB, i)[:0]...)"),
		"./materialize/compile", "TestVacantMemory"},
	{"words about memory that was there before", replace(" && e.order > a.Born", ""), "./materialize/compile", "TestVacantMemory"},
	{"vacant memory of the engine's", never, "./graphir", "TestSuballocatedAllocations"},
	{"memory after skipped work and before triggers", skip, "./internal/test/e2e", "TestLeftByEagerSteps/traces"},
	{"triggers of a native start that checks", replace("!s.capturedAll()", "true"), "./internal/test/e2e", "TestLeftByEagerSteps/traces"},
	{"contents that lie side by side", replace("out[n-1].offset+out[n-1].size == s.Offset", "out[n-1].offset+out[n-1].size <= s.Offset"), "./materialize/compile", "TestAppendPart"},
	{"contents that lie side by side", replace(" && out[n-1].alloc == s.Alloc", ""), "./materialize/compile", "TestAppendPart"},
	{"seed of a buffer", replace("uint64(alloc)<<24", "0*uint64(alloc)"), "./restore/check", "TestFillIsDeterministicAndDistinct"},
	{"seed of a buffer", replace("uint64(round)<<16", "0*uint64(round)"), "./restore/check", "TestGarbageDiffersBetweenRounds"},
	{"seed of a place in a buffer", replace(" ^ offset", ""), "./restore/check", "TestFillIsDeterministicAndDistinct"},
	{"ranges that hold no value", replace("<=", "<"), "./restore/check", "TestFillRefuses"},
	{"distinct values that do not fit", replace(">", ">="), "./restore/check", "TestDistinctIntegers"},
	{"each value once", replace("last-uint64(i)", "last"), "./restore/check", "TestDistinctIntegers"},
	{"lowest values first", replace("min(span, uint64(i)/nearby*nearby+nearby)", "span"), "./restore/check", "TestDistinctIntegers"},
	{"blocks that verification looks at", replace("named[i].Fill == contract.FillBlock", "false"), "./materialize/compile", "TestBlocksThatVerificationLooksAt"},
	{"lowest value", skip, "./restore/check", "TestIntegersAreInRange"},
	{"saved contents stay as they are", replace("append([]byte(nil), c.Data...)", "c.Data"), "./restore/memory", "TestResolvedContent"},
	{"period of a pattern", replace(" + 4112", ""), "./restore/check", "TestPatternIsNoStride"},

	// Headroom.
	{"memory that a start needs", replace("+p.PeakForward", ""), "./kvprofile", "TestCheck"},
	{"memory that the engine leaves for graphs", replace("+p.resident()", ""), "./kvprofile", "TestShares"},
	{"headroom that was measured", never, "./kvprofile", "TestShares"},
	{"memory that a start needs", replace("p.FreeBefore)", "p.TotalMemory)"), "./kvprofile", "TestCheck"},
	{"memory that stays allocated", replace("p.FreeBefore - ", "0*"), "./kvprofile", "TestCheck"},
	{"sizes fit the device", replace(">", ">="), "./kvprofile", "TestValidate"},
	{"KV cache that was never free", never, "./kvprofile", "TestValidate"},
	{"the whole memory of a device", replace("!=", "<"), "./kvprofile", "TestCheck"},
	{"room for an elastic KV cache", replace("p.KVBytes - (", "p.KVBytes + 0*("), "./kvprofile", "TestRoom"},
	{"memory that is free", replace("free < need", "free <= need"), "./kvprofile", "TestCheck"},
	{"granularity of headroom", replace("2 << 20", "2 << 10"), "./materialize", "TestLibraryBytes|TestMissingHeadroom"},
	{"memory of a framework is no library's", replace("first < len(blocks) && blocks[first]-a.Addr < a.Size", "first < 0"), "./materialize", "TestLibraryBytes"},
	{"memory of libraries at ready", replace("a.Died > r.ReadyOrder", "true"), "./materialize", "TestLibraryBytes"},
	{"memory of libraries at ready", replace("a.Born > warmup", "a.Born+warmup > 0"), "./materialize", "TestLibraryBytes"},
	{"headroom in whole pages", replace(" + headroomGranularity - 1", ""), "./materialize", "TestMissingHeadroom"},
	{"headroom as large as natively", replace("+shrunk", ""), "./materialize", "TestMissingHeadroom"},
	{"headroom that is missing", replace(" - shrunk", ""), "./materialize", "TestMissingHeadroom"},

	// Identity.
	{"build-ids can be relaxed", replace(" || strings.HasPrefix(key, prefixDSO)", ""), "./artifacts", "TestRelaxed"},
	{"noted factors change nothing", never, "./artifacts", "TestCompare"},
	{"digest of an identity", always, "./artifacts", "TestDocument"},
	{"factors occur once", never, "./artifacts", "TestIdentityValidate"},
	{"factors are text", never, "./artifacts", "TestIdentityValidate"},
	{"factors that differ", replace("!set || ", ""), "./artifacts", "TestCompare"},
	{"factors that an artifact knows nothing of", never, "./artifacts", "TestCompare"},
	{"fatal factors stay", replace("level != Relaxable", "level == Noted"), "./artifacts", "TestRelaxed"},
	{"what is relaxed", replace("d.Level == Relaxable && ", ""), "./artifacts", "TestRelaxed"},
	{"names that begin alike", replace("wild &&", "(wild || true) &&"), "./artifacts", "TestRelaxed"},
	{"differences that matter", replace("d.Level != Noted", "d.Level == Fatal"), "./artifacts", "TestRelaxed"},
}

// plugins has rows of the engines' plug-ins in Python.
var plugins = []mutant{
	logic("user who wants to try", never, "Gate.test_a_user_who_tries"),
	logic("sources of vLLM that differ", never, "Gate.test_releases_that_differ"),
	logic("supported release that an unknown one is compared with", replace("if numbers(known) <= wanted", ""), "Gate.test_a_release_that_is_the_same_is_taken_for_the_one_before_it"),
	logic("one minor release of torch", replace(`SUPPORTED[known] + "."`, "SUPPORTED[known]"), "Gate.test_versions"),
	logic("helper that keeps the graph manager", replace("cache.kv_sharing_fast_prefill, ", "False, "), "Gate.test_each_reason"),
	logic("graphs within a model", never, "Gate.test_graphs_within_a_model"),
	logic("scheduler in the worker's process", never, "Gate.test_elastic"),
	logic("release whose KV cache is allocated otherwise", never, "Gate.test_elastic"),
	elastic("blocks that a larger cache has", replace("if not b.ref_cnt", ""), "Blocks.test_blocks_that_come_back_before_they_are_free"),
	elastic("blocks that a smaller cache hands out", never, "Blocks.test_only_blocks_below_the_number_are_free"),
	elastic("cached prefixes in blocks that go", skip, "Blocks.test_cached_prefixes_go"),
	elastic("blocks that requests let go", skip, "Blocks.test_blocks_in_use_go_when_they_are_free"),
	elastic("cached prefix in a block that goes", replace("None if", "found if"), "Blocks.test_cached_prefixes_go"),
	elastic("memory of blocks that requests have", never, "Resizes.test_memory_of_requests_stays"),
	elastic("work that the device has not finished", skip, "Resizes.test_the_device_is_waited_for"),
	elastic("blocks after a resize that failed", skip, "Resizes.test_an_error_leaves_the_old_size"),
	elastic("client that leaves before a resize ends", never, "Endpoints.test_a_client_that_leaves"),
	logic("memory that a restored start asks for", never, "Gate.test_share_of_the_device"),
	logic("share of the device that the user allows", skip, "Gate.test_share_of_the_device"),
	logic("size of a KV cache that cannot be", replace("0 < ", ""), "Gate.test_sizes_of_a_kv_cache"),
	logic("memory that a capture makes for good", replace("set(after) - set(before)", "set(before) - set(after)"), "Gate.test_memory_that_captures_make"),
	logic("field of a descriptor that no label tells", replace(" - WORDS.keys()", " & WORDS.keys()"), "Gate.test_descriptors"),
	logic("fields of a label", replace("if f.name in WORDS", "if f.name in WORDS and f.default is dataclasses.MISSING"), "Labels.test_fields_of_newer_releases"),
	{"argument of vLLM's manager that it does not keep", never, "./runners/vllm/test/test_capture.py", "Captures.test_arguments_of_the_manager_that_vllm_made"},
	{"every combination", replace("args.every", "False"), "./runners/vllm/test/test_run.py", "TestCases.test_every"},
	{"exception of the plug-in", replace("any(", "False and any("), "./runners/vllm/test/test_architectures.py", "Outcome.test_an_exception_of_the_plugin"},
	{"files that a case needs", never, "./runners/vllm/test/test_sources.py", "TestCounts.test_counts"},
	{"packages that a start does not run", replace("packages.get(folder, True)", "True"), "./runners/vllm/test/test_sources.py", "TestKey.test_key"},
	{"results of other sources", replace(`row.get("key", "") == key(case)`, "True"), "./runners/torch/test/test_results.py", "TestResults.test_shown"},
	fingerprint("documentation of a definition", never, "Sources.test_documentation_alone_does_not_count"),
	fingerprint("file of vLLM that differs", replace("hashed(content) != known", "False"), "Starts.test_used_definitions_go_first"),
	fingerprint("callees of what the plug-in uses", skip, "Symbols.test_what_that_calls"),
	fingerprint("class that a method returns", replace("isinstance(s, ast.Return)", "False"), "Symbols.test_what_a_method_returns"),
	fingerprint("definition that is the same", replace("found == known", "found"), "Comparisons.test_a_line_of_a_callee"),
	logic("state space models", replace(" or ", " and "), "Gate.test_elastic"),
	logic("attention backends", replace("set(backends) - supported", "supported - set(backends)"), "Gate.test_backends"),
	logic("size of a checkpoint's files", replace(" {os.path.getsize(os.path.join(model, f))}", ""), "Identity.test_checkpoint_folder"),
	logic("configuration stays as it is", replace("copy.copy(config.model_config)", "config.model_config"), "Identity.test_where_a_model_lies_does_not_count"),
	logic("variables that say where something lies", replace("not in", "in"), "Identity.test_what_graphs_depend_on_counts"),
	logic("label of a step", replace("{told(desc)}", "tokens={desc.num_tokens}"), "Labels.test_any_difference_is_refused"),
	logic("label of a piece", replace("PIECE {index}", "PIECE"), "Labels.test_descriptors_of_the_v1_runner"),
	logic("label of a segment", replace("SEGMENT {index}", "SEGMENT"), "Labels.test_descriptors_of_the_v1_runner"),
	{"results that are the engine's own", replace("self.own(t)", "None"), "./runners/vllm/test/test_breakable.py", "Breakable.test_a_forward_in_another_process"},
	{"arguments that only this process has", replace("if not any(", "if any("), "./runners/vllm/test/test_breakable.py", "Breakable.test_calls_that_another_process_cannot_make"},
	{"functions that an artifact may name", never, "./runners/vllm/test/test_breakable.py", "Breakable.test_functions_that_break_no_graphs"},
	{"old address of memory that was freed", replace("!in.Live", "false"), "./materialize/compile", "TestOldAddressesInStructs"},
	logic("graphs that vLLM would capture", replace("wanted != by_label.keys()", "not wanted <= by_label.keys()"), "Labels.test_any_difference_is_refused"),
	logic("phase begins once", always, "Uses.test_phase_begins_once"),
	logic("captures in a start that restores nothing", never, "Uses.test_nothing_is_restored"),
	logic("graphs that cannot be installed", skip, "Uses.test_what_cannot_be_installed_is_refused"),
	logic("speculation that has graphs of its own", replace("not in SPECULATION + DRAFTS", "in ()"), "Gate.test_each_reason"),
	logic("graphs of an encoder", replace(`"cudagraph_mm_encoder", False)`, `"", False)`), "Gate.test_each_reason"),
	logic("drafts of a step", skip, "Identity.test_settings_that_the_hash_of_vllm_leaves_out"),
	logic("draft model", skip, "Identity.test_draft_model"),
	logic("drafts of changing length", replace("drafts and getattr", "False and getattr"), "Gate.test_each_reason"),
	logic("adapters and a draft model", replace("drafts and", "False and"), "Gate.test_each_reason"),
	logic("draft model that sleeps", replace("drafts and", "False and"), "Gate.test_each_reason"),
	logic("draft model of several ranks", replace("several and", "False and"), "Gate.test_each_reason_of_ranks"),
	{"sequences that are shorter than their part of a step", replace("min(queries.longest(runner.vllm_config), length - 1)", "1"), "./runners/vllm/test/test_inputs.py", "Inputs.test_lengths"},
	{"requests of a graph for any step", replace(`compilation.cudagraph_mode.name == "FULL"`, "False"), "./runners/vllm/test/test_queries.py", "Queries.test_graphs_for_any_step"},
	{"tokens of a request in a replay", replace("i * (tokens // requests)", "i"), "./runners/vllm/test/test_queries.py", "Queries.test_starts"},
	{"counts of tokens that a request has", replace(`"penalties": getattr(`, `"penalties": None and getattr(`), "./runners/vllm/test/test_inputs.py", "Inputs.test_requests"},
	{"scratch that has a name", replace("digest.Temporary", "digest.Weight"), "./internal/test/e2e", "TestHarshGraphs/scratch"},
	{"scratch that has a name", replace("digest.Temporary", "digest.Other"), "./internal/test/e2e", "TestHarshGraphs/kept"},
	{"memory of top-p", replace("for held in kept", "for held in ()"), "./runners/vllm/test/test_inputs.py", "Inputs.test_memory_of_the_sampler"},
	{"inputs of one value", replace("> 1", ">= 1"), "./internal/test/e2e", "TestHarshGraphs/flags"},
	{"workspace of attention", replace("workspaces()", "[]"), "./runners/vllm/test/test_inputs.py", "Inputs.test_workspaces"},
	{"attention of a draft model", replace(`getattr(drafts.speculator(runner), "attn_groups", [])`, "[]"), "./runners/vllm/test/test_inputs.py", "Inputs.test_attention_of_a_draft_model"},
	{"speculators that were tested", always, "./runners/vllm/test/test_capture.py", "Drafts.test_other_speculators_are_refused"},
	{"factories of a draft model's captures", never, "./runners/vllm/test/test_capture.py", "Drafts.test_restored_with_the_models"},
	{"last of a draft model's managers", replace("self is self.drafts.asked[-1]", "True"), "./runners/vllm/test/test_capture.py", "Drafts.test_a_draft_models_graphs_are_captured_behind_the_models"},
	{"captures of a draft model whose graphs are restored", always, "./runners/vllm/test/test_capture.py", "Drafts.test_restored_with_the_models"},
	logic("files of a prompt", skip, "Identity.test_settings_that_the_hash_of_vllm_leaves_out"),
	logic("backend of sleep mode", replace("!=", "=="), "Gate.test_each_reason"),
	logic("allocator of sleep mode", skip, "Identity.test_what_graphs_depend_on_counts"),
	logic("elastic KV cache in sleep mode", never, "Gate.test_elastic"),
	sleep("memory that vLLM keeps itself", replace("weights or ", ""), "Backends.test_what_is_kept"),
	sleep("memory that sleep mode discards", skip, "Backends.test_what_is_kept"),
	sleep("memory of a tag that sleeps on", replace(" if address not in there", ""), "Backends.test_a_tag_at_a_time"),
	sleep("check of graphs whose weights are there", never, "Sleeps.test_weights_that_were_kept"),
	sleep("graphs that vLLM's sleep leaves where they are", skip, "Sleeps.test_weights_that_were_kept"),
	sleep("buffers that are written into memory that sleeps", skip, "Sleeps.test_weights_that_come_later"),
	sleep("graphs that did not wake", always, "Sleeps.test_graphs_that_do_not_wake"),
	sleep("weights that a reload moves", never, "Sleeps.test_weights_that_are_reloaded"),
	logic("memory of graphs that is gone", never, "Uses.test_what_they_refer_to_is_gone"),
	logic("graphs that are dropped", skip, "Uses.test_restored_graphs_are_used_until_dropped"),
	logic("adapters of an encoder", replace(`"enable_tower_connector_lora", False)`, `"", False)`), "Gate.test_each_reason"),
	logic("adapters that sleep", replace("is not None and", "is not None and False and"), "Gate.test_each_reason"),
	logic("adapters of several ranks", replace("several and", "False and"), "Gate.test_each_reason_of_ranks"),
	{"changes that a model runner may leave out", replace("not runners or runner in runners", "True"), "./runners/vllm/test/test_run.py", "TestListed.test_of_one_runner"},
	{"workspaces of other streams", replace("*streams", ""), "./runners/torch/test/test_plugin.py", "Workspaces.test_what_products_leave"},
	{"adapters of a whole step's replay", skip, "./runners/vllm/test/test_capture.py", "Wrapper.test_adapters_of_a_replay"},
	{"rows of each request", replace("i >= requests", "i > requests"), "./runners/vllm/test/test_adapters.py", "Adapters.test_rows_take_turns"},
	{"adapters that are not loaded for a replay", skip, "./runners/vllm/test/test_adapters.py", "Adapters.test_nothing_is_loaded"},
	{"adapters that were loaded before a replay", skip, "./runners/vllm/test/test_adapters.py", "Adapters.test_nothing_is_loaded"},
	{"addresses in tensors", replace("s.addresses", "false"), "./restore/check", "TestHashOnHost"},
	{"addresses that would be filled", never, "./graphir", "TestValidateNamesEachViolation"},
	logic("factories in the order of captures", replace(`"PIECEWISE", "FULL"`, `"FULL", "PIECEWISE"`), "Factories.test_as_vllm_calls_them"),
	logic("factories of captures", never, "Factories.test_as_vllm_calls_them"),
	logic("buffers that serving changes", never, "Watches.test_what_changes"),
	logic("changes from step to step", skip, "Watches.test_what_has_changed_before"),
	{"factories of a restored start", skip, "./runners/vllm/test/test_capture.py", "Captures.test_a_restored_start_leaves_what_captures_leave"},
	{"rows that verification chose", skip, "./runners/vllm/test/test_capture.py", "Captures.test_a_replay_has_the_rows_that_verification_chose"},
	{"inputs that factories write", skip, "./runners/vllm/test/test_capture.py", "Captures.test_the_profile_sees_what_factories_write"},
	state("state of the plug-in", never, "State.test_what_is_left_out"),
	state("objects that refer to each other", replace("{id(root)}", "set()"), "State.test_scalars_and_keys"),
	state("another tensor of the same shape", replace("now if now != was else", "now if True else"), "State.test_tensors"),
	state("changes that are listed", replace("not any", "any"), "State.test_lost"),
	logic("platform of others", replace("is not None", "is None"), "Platform.test_rival"),
	logic("worker of the user", always, "Platform.test_nothing_is_said_where_nothing_was_asked"),
}

// logicTests has the file of each class of tests of the plug-in's decisions.
var logicTests = map[string]string{
	"Gate": "gate", "Share": "gate", "Identity": "identity", "Labels": "labels", "Uses": "labels", "Factories": "labels", "Watches": "labels",
	"Platform": "platform", "Metrics": "platform",
}

func logic(name string, c change, test string) mutant {
	class, _, _ := strings.Cut(test, ".")
	return mutant{name, c, "./runners/vllm/test/test_" + logicTests[class] + ".py", test}
}

func elastic(name string, c change, test string) mutant {
	return mutant{name, c, "./runners/vllm/test/test_elastic.py", test}
}

func sleep(name string, c change, test string) mutant {
	return mutant{name, c, "./runners/vllm/test/test_sleep.py", test}
}

func fingerprint(name string, c change, test string) mutant {
	return mutant{name, c, "./runners/vllm/test/test_fingerprint.py", test}
}

func state(name string, c change, test string) mutant {
	return mutant{name, c, "./runners/vllm/test/test_state.py", test}
}
