// Package sim simulates an installation in one goroutine: masters, children, hosts and
// groups, operators, and a Redis that is the model of jobs/model, with a clock of
// its own, restarts, failovers and lost writes. Time is pretended and chance comes
// from one seed, so a seed replays exactly.
//
// The judge trusts the logs of the hosts rather than the queue: they show each command
// that was started, its token, and how long it ran, even if its worker died. The
// processes here follow the protocol of master, worker and jobs/queue: they call the
// pure functions of these packages, and repeat the rest in a few lines, without
// goroutines.
//
// Floor 14: nothing but tests.
package sim
