// Package clitest makes clients and sessions of the command line for tests.
package clitest
