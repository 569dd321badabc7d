package settings

import "muster/internal/serverkey"

// ServerKeys returns a function that reads the key of servers; without a file it gives none. A
// changed file is in force at once, though it is read only when it has changed: every order and
// every request with a token needs it.
func ServerKeys(path string) func() (serverkey.Keys, error) {
	if path == "" {
		return func() (serverkey.Keys, error) { return serverkey.Keys{}, nil }
	}
	w := watched[serverkey.Keys]{setting: "server.key", path: path, max: keysMax, bad: 0o077,
		parse: func(data []byte) (serverkey.Keys, error) {
			k, err := serverkey.Parse(data)
			return k, prefixed("server.key: "+path+": ", err)
		}}
	return w.get
}
