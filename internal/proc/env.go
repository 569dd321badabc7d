package proc

import "os"

// ChildEnv is all that a child sees of the environment: no secret is in it.
func ChildEnv() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "LANG", "TZ", "GOTRACEBACK", "GOCOVERDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
