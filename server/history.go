package server

import "errors"

// errNoHistory is the answer of a server without one.
var errNoHistory = errors.New("this server keeps no history: history.url is none")
