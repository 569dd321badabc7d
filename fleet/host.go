package fleet

import (
	"fmt"
	"strings"
)

// Fence says whether a host keeps a record of the steps it is given, by which it
// refuses a second start (docs/GUARANTEES.md, G4).
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
	HostKeys []string          `json:"host_keys"`          // "ssh-ed25519 AAAA…", one a key; or HostCAs
	Customer string            `json:"customer,omitempty"` // who owns it
	Zone     string            `json:"zone"`               // where it can be reached from; never empty
	Group    string            `json:"group,omitempty"`    // redundancy group; empty: none
	Fence    Fence             `json:"fence"`
	Labels   map[string]string `json:"labels,omitempty"` // case is kept

	Jump []Hop `json:"jump,omitempty"` // the way to it, first the one that the node dials
	Access
	HostCert
}

// HostCert is what the certificate of a host key is judged by. A key that is listed
// itself needs none.
type HostCert struct {
	HostCAs    []string `json:"host_cas,omitempty"`   // keys that may sign it, written like a host key
	Principals []string `json:"principals,omitempty"` // it must be for one; none: for address or name
	Revoked    []string `json:"revoked,omitempty"`    // keys that are refused, of hosts and authorities
}

// ProfileLegacy is the profile of a host that knows only what has been given up
// elsewhere: SHA-1, CBC, short groups.
const ProfileLegacy = "legacy"

// Hop is a jump host on the way to a host, with all that is needed to log in to
// it. Its fields mean what those of a Host mean.
type Hop struct {
	Name        string   `json:"name"`
	Address     string   `json:"address"` // as it is reached from the hop before
	Port        int      `json:"port"`
	User        string   `json:"user"`
	Key         string   `json:"key,omitempty"`
	Certificate string   `json:"certificate,omitempty"`
	HostKeys    []string `json:"host_keys,omitempty"`
	Profile     string   `json:"profile,omitempty"`
	HostCert
}

// Hop is the host as a place to log in to, without the way there.
func (h *Host) Hop() Hop {
	return Hop{
		Name: h.Name, Address: h.Address, Port: h.Port, User: h.User,
		Key: h.Key, Certificate: h.Certificate,
		HostKeys: h.HostKeys, Profile: h.Profile, HostCert: h.HostCert,
	}
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

// Word is what a message may repeat of a key that nobody knows: as much of its beginning as
// letters, digits, '.', '-' and '_' make. The file may be another than it should be, and hold
// what whoever reads the message may not know.
func Word(s string) string {
	const most = 40
	end := strings.IndexFunc(s, notInName)
	if end < 0 {
		end = len(s)
	}
	if len(s) <= 3 {
		return s
	}
	if end = min(end, most); end < len(s) {
		return s[:end] + "…"
	}
	return s
}

func notInName(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return r != '.' && r != '-' && r != '_'
}
