// Package sim plays the house in one goroutine: masters, children, hosts and
// groups, operators, and a Redis that is the model of jobs/model, with a clock of
// its own, restarts, failovers and lost writes. Time is pretended and chance comes
// from one seed, so a seed replays exactly.
//
// Who judges is not the queue but the log of the hosts: what was started where, by
// which token, and for how long it ran, whatever became of the worker that started
// it. The processes here follow the protocol of master, worker and jobs/queue as
// those are written; what is a pure function there is used, the rest is said again
// in few lines, without their goroutines.
//
// Floor 9: nothing but tests.
package sim
