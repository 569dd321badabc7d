// Package queue stores jobs in Redis. No other package talks to Redis, except for the folders
// below.
//
// Every change of a job is one script in lua/, run as EVALSHA: it reads and checks everything, then
// writes, and takes all times from Redis. Package keys names every key. Reads for people (tasks,
// jobs, events, nodes) are plain commands and bounded pages.
//
// The package decides nothing about work: worker decides what a result means, and the table of
// package jobs which state may follow.
//
// Floor 3: may import its keys and its codec, jobs and below.
package queue
