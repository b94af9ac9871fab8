// Package materialize turns recorded engine starts into a verified artifact.
//
// In: an engine's command. It is started under the recorder, its traces are read (recording) and compiled (compile). Out: an artifact
// whose restored graphs were compared bit by bit with natively captured ones before it got its name. Fails: an engine that does not
// end as it should (*EngineError), marks from which no artifact can be made (*MarksError), memory that a restored engine lacks
// (*HeadroomError), and everything that recording and compile refuse.
package materialize
