package main

// serving has a row for each mechanism that stands between a client of a server and its own answer.
var serving = []mutant{
	{"blocks of a client that has left", skip, "./runners/reference", "TestServe"},
	{"characters of several tokens", never, "./runners/reference/openai", "TestPiecesAreWholeCharacters"},
	{"weights after a sleep", replace("e.kept[i]", "e.kept[0*i]"), "./runners/reference", "TestServeSleeps"},
	{"memory that is still in use", never, "./agent", "TestMemoryIsFreeBeforeAStart"},
	{"a model that fails on one GPU", never, "./agent", "TestFailedStart"},
	{"an engine that has not answered", skip, "./gateway", "TestHang"},
	{"engines of an earlier server", skip, "./agent", "TestHomeEndsWhatIsLeft"},
	{"one worker of a function on a GPU", never, "./simulate", "TestOneWorker"},
	{"clients that do not read", skip, "./gateway", "TestClientThatDoesNotRead"},
	{"answers that are measured", always, "./gateway", "TestRefusedRequestsAreNotMeasured"},
	{"requests that wait across a new configuration", skip, "./dispatch", "TestReconfigure"},
	{"requests of an earlier configuration", always, "./dispatch", "TestReconfigure"},
	{"places that an earlier configuration leaves", never, "./dispatch", "TestReconfigure"},
	{"engines that leave", never, "./gateway", "TestReloadDrains"},
	{"places of models that requests know", always, "./gateway", "TestReloadLosesNoRequest"},
	{"a port for each engine", never, "./agent", "TestPortsDiffer"},
	{"ports of other programs", never, "./agent", "TestForeignProgram"},
	{"API keys", becomes("found = 1"), "./gateway", "TestRefusals"},
	{"bound of waiting requests", never, "./gateway", "TestBound"},
	{"a request whose engine has died is tried once more", never, "./gateway", "TestRetry"},
	{"processes that an engine leaves behind", never, "./interpose", "TestEndKillsTheRest"},
	{"one answer a decision", never, "./dispatch", "TestOneAnswerADecision"},
}
