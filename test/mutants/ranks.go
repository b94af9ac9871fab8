package main

// ranks has rows of engines of several ranks: the plug-ins' tests need neither torch nor vLLM.
var ranks = []mutant{
	{"ranks agree unless this one is alone", replace("|| s.env.alone()", "|| true"), "./restore", "TestPeersOfARun"},
	{"start that serves alone", never, "./restore", "TestPeersOfARun"},
	{"other data from peers in the second recording", never, "./test/ranks", "TestAlone/kept"},
	{"recordings with other data from peers", never, "./test/ranks", "TestAlone/kept"},
	{"results that depend on peers' data in saved contents", never, "./test/ranks", "TestAlone/kept"},
	{"results in memory of triggering layers", always, "./restore", "TestPeersReach"},
	{"memory with results of peers", never, "./test/ranks", "TestAlone/received"},
	{"memory of a communicator that no run sees", skip, "./test/ranks", "TestAlone/crowded"},
	{"results without peers", never, "./test/ranks", "TestAlone/restored"},
	{"calls of ranks that were recorded alone", always, "./test/ranks", "TestAlone/no-mark"},
	{"addresses that a communicator would not bear", never, "./test/ranks", "TestAlone/restored"},
	{"ranks end together", always, "./test/ranks", "TestRanks/slow"},
	{"ranks that have verified end together", never, "./restore", "TestRanksEndTogether"},
	{"series of ranks that ran together", never, "./test/e2e", "TestResume"},
	plugin("call that is made anew", replace("== ALL_REDUCE", "== ALL_GATHER"), "Collectives.test_calls_are_made_anew"),
	plugin("call of a rank that is alone", never, "Collectives.test_rank_that_is_alone"),
	plugin("other calls of a rank that is alone", never, "Collectives.test_rank_that_is_alone"),
	plugin("calls that are no hole", replace("if name in OTHERS", "if not name"), "Collectives.test_calls_that_are_no_hole"),
	plugin("broadcast that only receives", replace("if number(send) else recv", ""), "Collectives.test_broadcast_to_a_rank_that_sends_nothing"),
	holes("graphs that stand for a call", replace(" or [inner.kind for inner in inside] != form(kernel)", ""), "Holes.test_other_embedded_graphs_stay"),
	logic("all-reduce that is off", replace(" and not way.disabled", ""), "OwnAllReduce.test_absent"),
	logic("call that vLLM would make in another way", replace("is None", "is False"), "OwnAllReduce.test_refused_call"),
	logic("call of symmetric memory that vLLM would make in another way", replace(" or not self.way.should_use_symm_mem(inp)", ""), "OwnAllReduce.test_symmetric_memory"),
	holes("nodes that are compared beside calls", replace("== calls else", "!= calls else"), "Holes.test_calls_or_the_others"),
	logic("recording of several engines", replace("run != contract.RUN_RESTORE", "False"), "Reasons.test_each_reason"),
	logic("engines that share experts", replace("config.model_config.is_moe", "False"), "Reasons.test_each_reason"),
	logic("engines of several ranks", replace("> 1", "> 9"), "Reasons.test_each_reason"),
	logic("engines of several commands", replace(" or parallel.data_parallel_hybrid_lb", ""), "Reasons.test_each_reason"),
	logic("engines of several machines", replace("parallel.data_parallel_size_local != parallel.data_parallel_size", "False"), "Reasons.test_each_reason"),
	logic("engines that Ray starts", replace(`parallel.data_parallel_backend != "mp"`, "False"), "Reasons.test_each_reason"),
	logic("devices that are chosen by number", replace("is not None", "is False"), "Reasons.test_each_reason"),
	logic("device of another engine", replace("* parallel.world_size", "* 0"), "Engines.test_several_engines_know_their_number"),
	logic("engines that are not supported", replace("if reason", "if not run"), "Engines.test_a_refusal_is_said_once"),
	logic("ranks with different layers", replace("> 1", "> 9"), "Gate.test_each_reason_of_ranks"),
	logic("executors of several ranks", replace("several and", "not several and"), "Gate.test_each_reason_of_ranks"),
	logic("kernels that hold a collective operation", replace("several and", "not several and"), "Gate.test_each_reason_of_ranks"),
	logic("ranks that sleep", replace("several and", "False and"), "Gate.test_each_reason_of_ranks"),
}

func holes(name string, c change, test string) mutant {
	return mutant{name, c, "./runners/torch/test/test_holes.py", test}
}
