package main

// pooled has a row for each mechanism that stands between a process of a pool and a start that differs from it.
var pooled = []mutant{
	{"variables of the key", never, "./restore/pool", "TestDifferences"},
	{"variables that were recorded", never, "./restore/pool", "TestDifferences"},
	{"the whole environment", never, "./restore/pool", "TestDifferences"},
	{"arguments that imports read", never, "./restore/pool", "TestDifferences"},
	{"files that have changed since", never, "./restore/pool", "TestDifferences"},
	{"properties that no process can change", never, "./restore/pool", "TestDifferences"},
	{"limits that cannot be raised", never, "./restore/pool", "TestDifferences|TestWithoutPrivileges"},
	{"signals of the C library", replace("&& n != sigCancel && n != sigSetXID", ""), "./restore/pool", "TestSignals"},
	{"requests of other users", never, "./restore/pool", "TestAnotherUser"},
	{"imports beside the command", never, "./test/pool", "TestSingle"},
	{"imports side by side", replace("filling.Go(func() { p.once(e) })", "p.once(e)"), "./test/pool", "TestSingle"},
	{"imports in the folder of the start", replace("e.Size, e.Folder = 1, folder", "e.Size = 1"), "./test/pool", "TestSingle"},
	{"no wait for what cannot fit", replace("&& len(e.keyDifferences(s)) == 0", ""), "./restore/pool", "TestSingleWaits"},
	{"no collections while modules are imported", skip, "./test/pool", "TestSingle"},
	{"weights read beside imports", never, "./restore/supervisor", "TestWeights"},
	{"files that do not fit", never, "./internal/pagecache", "TestReadRefuses"},
	{"used once", skip, "./restore/pool", "TestUsedOnce"},
	{"priority of the caller", replace("Nice: int32(nice)", "Nice: int32(19+0*nice)"), "./test/pool", "TestPool"},
	{"a start that differs from the pool's processes", skip, "./test/pool", "TestPool"},
	{"a caller that has died", skip, "./test/pool", "TestPool"},
	{"signals from the program's first moment", skip, "./test/pool", "TestPool"},
	{"variables of the pool go", never, "./test/pool", "TestPool"},
	{"signals that are blocked", skip, "./test/pool", "TestPool"},
	{"limits of the caller", never, "./test/pool", "TestPool"},
	{"packages without what they import", replace("ended - began - inner", "ended - began"), "./restore/starts/waterfall", "TestRecord"},
	inPython("variables that imports read", skip, "Recorded.test_reads"),
	inPython("places of modules in safe mode", always, "Program.test_what_a_program_sees"),
}

func inPython(name string, c change, test string) mutant {
	return mutant{name, c, "./runners/pool/test/test_pool.py", test}
}
