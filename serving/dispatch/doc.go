// Package dispatch owns a scheduling policy, its clock and its view of the machines. A simulator and a live server use it for their decisions.
//
// In: arrivals, clients that leave, completions, engines and GPUs that are lost, each at a time in seconds, and a [schedule.Cluster] to look at.
// Out: decisions, and a log of all their inputs. [Replay] makes the decisions of a log again and refuses one that differs. A [Queue] is a Core for
// many goroutines with a clock.
//
// Fails: wrong parameters of a policy ([New]), writing a log ([Log.Close]), a log that is damaged or from another version ([FormatError]), a
// decision that the policy does not make ([DecisionError]).
package dispatch
