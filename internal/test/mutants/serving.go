package main

// serving has a row for each mechanism that stands between a client of a server and its own answer.
var serving = []mutant{
	{"blocks of a client that has left", skip, "./runners/reference", "TestServe"},
	{"characters of several tokens", never, "./runners/reference/openai", "TestPiecesAreWholeCharacters"},
}
