package main

import "strings"

// decisions has the file of each class of tests of the plug-in's decisions.
var decisions = map[string]string{
	"OwnAllReduce": "all_reduce", "Reasons": "engines", "Engines": "engines", "Gate": "gate", "Share": "gate", "Identity": "identity", "Contents": "identity", "Tables": "identity", "Labels": "labels", "Uses": "labels", "Factories": "labels", "Watches": "labels",
	"Platform": "platform", "Metrics": "platform",
}

// fileOfDecision returns the file of such a test, CLASS.NAME.
func fileOfDecision(test string) string {
	class, _, _ := strings.Cut(test, ".")
	return "./runners/vllm/test/test_" + decisions[class] + ".py"
}
