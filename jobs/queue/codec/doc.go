// Package codec encodes and decodes the data that Redis holds and that scripts take and return:
// records of jobs, arguments, answers, events. It is the counterpart in Go of lua/shared, and knows
// no connection.
//
// Floor 2: may import jobs and fleet.
package codec
