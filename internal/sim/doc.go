// Package sim simulates an installation in pretended time: masters, children, hosts and groups,
// operators, and a Redis that is the model of jobs/model, with a clock of its own, restarts,
// failovers and lost writes. Chance comes from one seed, so a seed replays exactly.
//
// The children run the real worker and the nodes the real master, with all their goroutines, in a
// bubble of testing/synctest. All else belongs to one goroutine, the world. The real code reaches
// it through its doors alone: the queue, the connections to hosts, the starts of children, the log.
// See bubble_test.go for what keeps the order.
//
// The judge trusts the logs of the hosts rather than the queue: they show each command
// that was started, its token, and how long it ran, even if its worker died. The operators and the
// connections to Redis follow the protocol of server and jobs/queue, which are repeated here in a
// few lines without goroutines.
//
// Floor 14: nothing but tests.
package sim
