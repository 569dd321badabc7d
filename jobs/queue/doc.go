// Package queue keeps jobs in Redis. It is the only door to Redis.
//
// Every change of a job is one script in lua/, run as EVALSHA: it reads and
// checks everything, then writes, and takes all times from Redis. keys.go makes
// every key. Reads for people (tasks, jobs, events, nodes) are plain commands
// and bounded pages.
//
// The package decides nothing about work: what a result means is the business
// of worker, what may follow is the table of package jobs.
//
// Floor 3: may import its keys and its codec, jobs and below.
package queue
