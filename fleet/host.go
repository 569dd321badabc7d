package fleet

import (
	"fmt"
	"strings"
)

// Fence decides whether a host keeps a record of the steps that it runs. With the record it
// refuses to start a step twice (docs/GUARANTEES.md, G4).
type Fence string

// The values of Fence.
const (
	FenceAuto     Fence = "auto"     // the host's tools decide
	FenceNone     Fence = "none"     // never try, as on an appliance
	FenceRequired Fence = "required" // refuse a host that cannot keep a record
)

// Host is one managed machine, reached over SSH. Workers read it from Redis, so it
// contains no secret: Key is only a path on the node.
type Host struct {
	Name     string            `json:"name"`
	Address  string            `json:"address"`            // IP address or DNS name, without port
	Port     int               `json:"port"`               // 1 to 65535
	User     string            `json:"user"`               // login name on the host
	Key      string            `json:"key,omitempty"`      // path of the private key on the node; empty: the agent
	HostKeys []string          `json:"host_keys"`          // "ssh-ed25519 AAAA…", one a key; or HostCAs
	Customer string            `json:"customer,omitempty"` // owner
	Zone     string            `json:"zone"`               // decides which nodes can reach it; never empty
	Group    string            `json:"group,omitempty"`    // redundancy group; empty: none
	Fence    Fence             `json:"fence"`
	Labels   map[string]string `json:"labels,omitempty"` // case is kept

	Jump []Hop `json:"jump,omitempty"` // jump hosts on the way to it, in the order of dialing
	Access
	HostCert
}

// HostCert says which certificates for host keys are accepted. A key that is listed in
// HostKeys needs no certificate.
type HostCert struct {
	HostCAs    []string `json:"host_cas,omitempty"`   // keys that may sign it, in the format of HostKeys
	Principals []string `json:"principals,omitempty"` // the certificate must carry one of these; none: address or name
	Revoked    []string `json:"revoked,omitempty"`    // refused keys of hosts and authorities
}

// ProfileLegacy is the profile of a host that supports only obsolete algorithms: SHA-1,
// CBC, short groups.
const ProfileLegacy = "legacy"

// Hop is a jump host on the way to a host, with everything that a login needs.
// Its fields have the same meaning as those of Host.
type Hop struct {
	Name        string   `json:"name"`
	Address     string   `json:"address"` // as seen from the previous hop
	Port        int      `json:"port"`
	User        string   `json:"user"`
	Key         string   `json:"key,omitempty"`
	Certificate string   `json:"certificate,omitempty"`
	HostKeys    []string `json:"host_keys,omitempty"`
	Profile     string   `json:"profile,omitempty"`
	HostCert
}

// Hop returns the host as a jump host, without the way to it.
func (h *Host) Hop() Hop {
	return Hop{
		Name: h.Name, Address: h.Address, Port: h.Port, User: h.User,
		Key: h.Key, Certificate: h.Certificate,
		HostKeys: h.HostKeys, Profile: h.Profile, HostCert: h.HostCert,
	}
}

// DefaultZone is the zone of hosts for which the inventory gives none (design §1).
const DefaultZone = "default"

// nameMax bounds the name of a host, zone, group or customer, in bytes. No DNS
// name is longer, and every queued job carries the name of its host.
const nameMax = 253

// CheckName returns an error unless s can name a host, a zone, a group or a customer.
// A name has ASCII letters, digits, dots, dashes and underscores, begins with a letter,
// digit or underscore, and has at most 253 bytes. It is therefore safe in a Redis key, a
// job id, a file name and a log line, and no program takes it for an option.
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

// CheckZone returns an error unless s can name a zone: any name except hub, under which
// Redis keeps what belongs to no zone.
func CheckZone(s string) error {
	if s == "hub" {
		return fmt.Errorf("name %q is taken by muster itself: choose another", s)
	}
	return CheckName(s)
}

// Word returns as much of an unknown key as a message may quote: the letters, digits, '.', '-'
// and '_' at its beginning. The file may be a different one from what its user claims, and
// contain text that the reader of the message must not see.
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
