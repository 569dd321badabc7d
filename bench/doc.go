// Command bench measures muster beside its peers: on the same redis-server, on
// the same pretended hosts, in one run, in turns. It prints one table of medians,
// ratios and targets.
//
// A section is one kind of measurement, a file each. It has contenders; in every
// round each of them has its turn, and the order is another one each time, so
// that what else the machine does hits all of them alike. Figures are of one
// machine at one moment: the ratios are what can be compared.
//
// The queue is measured through package jobs/queue, as its callers see it. What
// concerns processes (ssh, child, idle) is measured on the binary that is shipped.
//
// It is a program and no test: it asserts no speed, but it stops with an error
// where a figure would be wrong, because a job got lost or a host said no.
//
// A module of its own, so that nothing of the peers gets into the house.
package main
