package fleet

import (
	"fmt"
	"strings"
)

// Fence says how far a host can keep the record of an attempt itself
// (design §7). Until that record exists all hosts run plain.
type Fence string

// The fences of a host.
const (
	FenceAuto     Fence = "auto"     // decided by what the host answers
	FenceNone     Fence = "none"     // an appliance: never tried
	FenceRequired Fence = "required" // a host that cannot is refused
)

// Host is one machine that is managed, reached over SSH. It is what workers
// read from Redis, so it holds no secret: Key is a path on the node.
type Host struct {
	Name     string            `json:"name"`
	Address  string            `json:"address"`            // IP address or DNS name, without port
	Port     int               `json:"port"`               // 1 to 65535
	User     string            `json:"user"`               // login name on the host
	Key      string            `json:"key,omitempty"`      // path of the private key on the node; empty: the agent
	HostKeys []string          `json:"host_keys"`          // "ssh-ed25519 AAAA…", one a key; at least one
	Customer string            `json:"customer,omitempty"` // who owns it
	Zone     string            `json:"zone"`               // where it can be reached from; never empty
	Group    string            `json:"group,omitempty"`    // redundancy group; empty: none
	Fence    Fence             `json:"fence"`
	Labels   map[string]string `json:"labels,omitempty"` // case is kept
}

// DefaultZone is the zone of hosts that name none (design §1).
const DefaultZone = "default"

// nameMax bounds the name of a host, zone, group or customer, in bytes: a DNS
// name is not longer, and every queued job carries its host's name.
const nameMax = 253

// CheckName tells whether s can name a host, a zone, a group or a customer:
// ASCII letters, digits, dot, dash and underscore, first a letter, digit or
// underscore, at most 253 bytes. So a name can stand in a Redis key, a job id,
// a file name and a log line, and can never be taken for an option.
func CheckName(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("name is empty")
	case len(s) > nameMax:
		return fmt.Errorf("name %q… has %d bytes: at most %d", s[:20], len(s), nameMax)
	case s[0] == '-' || s[0] == '.':
		return fmt.Errorf("name %q starts with %q: start with a letter or a digit", s, s[:1])
	}
	if i := strings.IndexFunc(s, notInName); i >= 0 {
		return fmt.Errorf("name %q has %q: use letters, digits, '.', '-' and '_'", s, []rune(s[i:])[0])
	}
	return nil
}

// CheckZone tells whether s can name a zone: any name but hub, under which Redis
// keeps what belongs to no zone.
func CheckZone(s string) error {
	if s == "hub" {
		return fmt.Errorf("name %q is taken by muster itself: choose another", s)
	}
	return CheckName(s)
}

func notInName(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return r != '.' && r != '-' && r != '_'
}
