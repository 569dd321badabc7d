// Package demo implements muster demo: all of muster with pretended hosts, started and shown in a
// minute. It starts the other roles as processes of the same binary.
//
// Floor 7: may import cli and below.
package demo
