// Package chaos runs all of muster as real processes, gives it one fault after the
// other, and then asks the hosts whether its promises held.
//
// It is a test that is asked for: `make chaos`, or
//
//	go test ./internal/chaos -run TestChaos -v -timeout 0 -chaos.for 10m [-chaos.seed N]
//
// A Redis with its append-only file, two servers and three masters work for 200
// pretended hosts, and for four real ones that keep records of their steps. An operator
// submits, pauses, cancels, halts and clears, a saboteur kills, stops, stalls and cuts.
// Then the faults end, everything must come to an end, and the log of the hosts and the
// events of the queue are held against each other: judge_test.go says what is looked at,
// and on what condition.
//
// The seed decides who gets which fault when. It does not repeat a run: processes
// and the network go their own ways.
//
// Floor 14: holds tests and nothing else.
package chaos
