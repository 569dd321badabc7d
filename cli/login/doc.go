// Package login has the commands by which people log in and out: login, logout, session.
//
// Floor 6: may import cli and what is below.
package login
