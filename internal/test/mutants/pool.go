package main

// pooled has a row for each mechanism that stands between a process of a pool and a start that differs from it.
var pooled = []mutant{
	{"variables of the key", never, "./pool", "TestDifferences"},
	{"variables that were recorded", never, "./pool", "TestDifferences"},
	{"the whole environment", never, "./pool", "TestDifferences"},
	{"arguments that imports read", never, "./pool", "TestDifferences"},
	{"files that have changed since", never, "./pool", "TestDifferences"},
	{"properties that no process can change", never, "./pool", "TestDifferences"},
	{"limits that cannot be raised", never, "./pool", "TestDifferences|TestWithoutPrivileges"},
	{"signals of the C library", replace("&& n != sigCancel && n != sigSetXID", ""), "./pool", "TestSignals"},
	{"requests of other users", never, "./pool", "TestAnotherUser"},
	{"imports beside the command", never, "./internal/test/pool", "TestSingle"},
	{"imports side by side", replace("filling.Go(func() { p.once(e) })", "p.once(e)"), "./internal/test/pool", "TestSingle"},
	{"imports in the folder of the start", replace("e.Size, e.Folder = 1, folder", "e.Size = 1"), "./internal/test/pool", "TestSingle"},
	{"no wait for what cannot fit", replace("&& len(e.keyDifferences(s)) == 0", ""), "./pool", "TestSingleWaits"},
	{"no collections while modules are imported", skip, "./internal/test/pool", "TestSingle"},
	{"weights read beside imports", never, "./supervisor", "TestWeights"},
	{"files that do not fit", never, "./internal/pagecache", "TestReadRefuses"},
	{"used once", skip, "./pool", "TestUsedOnce"},
	{"priority of the caller", replace("Nice: int32(nice)", "Nice: int32(19+0*nice)"), "./internal/test/pool", "TestPool"},
	{"a start that differs from the pool's processes", skip, "./internal/test/pool", "TestPool"},
	{"a caller that has died", skip, "./internal/test/pool", "TestPool"},
	{"signals from the program's first moment", skip, "./internal/test/pool", "TestPool"},
	{"variables of the pool go", never, "./internal/test/pool", "TestPool"},
	{"signals that are blocked", skip, "./internal/test/pool", "TestPool"},
	{"limits of the caller", never, "./internal/test/pool", "TestPool"},
	{"packages without what they import", replace("ended - began - inner", "ended - began"), "./internal/starts/waterfall", "TestRecord"},
	inPython("variables that imports read", skip, "Recorded.test_reads"),
	inPython("places of modules in safe mode", always, "Program.test_what_a_program_sees"),
}

func inPython(name string, c change, test string) mutant {
	return mutant{name, c, "./runners/pool/test/test_pool.py", test}
}
