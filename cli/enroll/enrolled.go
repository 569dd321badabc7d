package enroll

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"muster/cli"
	"muster/fleet"
	"muster/fleet/remote"
)

// enrolled holds the keys that a host has shown.
type enrolled struct {
	Host    string        `json:"host"`
	Address string        `json:"address"`
	Keys    []enrolledKey `json:"keys"`
	Error   string        `json:"error,omitempty"`
}

// enrolledKey is a key that a host has shown.
type enrolledKey struct {
	Type        string   `json:"type"`
	Fingerprint string   `json:"fingerprint"`
	Key         string   `json:"key"`  // for an inventory
	Line        string   `json:"line"` // for known_hosts
	State       keyState `json:"state"`
	Known       string   `json:"known,omitempty"` // fingerprint of the known key that it differs from
	Written     bool     `json:"written"`
	inFile      bool     // in the file of --write

	// Certifies means that the key belongs to the authority that signed the host's certificate.
	Certifies *certified `json:"certifies,omitempty"`
}

// keyState says whether a key is new, known, changed or revoked.
type keyState string

const (
	keyNew     keyState = "new"
	keyKnown   keyState = "known"
	keyChanged keyState = "changed" // the known key of this type is another one
	keyRevoked keyState = "revoked" // the file forbids to trust it
)

// judge compares the keys that a host has shown with its keys in the inventory or the file.
func (e *enrolled) judge(h fleet.Host, book *knownFile) {
	known := slices.Clone(h.HostKeys)
	if book != nil {
		known = append(known, book.keys(h)...)
	}
	for i := range e.Keys {
		k := &e.Keys[i]
		if k.Certifies != nil {
			k.judgeAuthority(h, book)
			continue
		}
		k.State, k.Known = compareKey(*k, known)
		if book != nil {
			k.inFile = slices.ContainsFunc(book.keys(h), func(l string) bool { return sameKey(l, k.Key) })
			if book.revoked(k.Key) {
				k.State = keyRevoked
			}
		}
	}
}

// compareKey returns the state of a key, given the known keys of the host, and the fingerprint of
// the key that it differs from.
func compareKey(shown enrolledKey, known []string) (state keyState, other string) {
	for _, line := range known {
		switch {
		case sameKey(line, shown.Key):
			return keyKnown, ""
		case keyType(line) == shown.Type:
			other = fingerprintOf(line)
		}
	}
	if other != "" {
		return keyChanged, other
	}
	return keyNew, ""
}

func keyType(line string) string {
	t, _, _ := strings.Cut(line, " ")
	return t
}

// sameKey compares type and key, not the comment.
func sameKey(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	return len(x) >= 2 && len(y) >= 2 && x[0] == y[0] && x[1] == y[1]
}

// fingerprintOf returns the fingerprint of a key, or the line itself if it cannot be read.
func fingerprintOf(line string) string {
	text, err := remote.Fingerprint(line)
	if err != nil {
		return line
	}
	return text
}

// knownName returns the name of a host in a known_hosts file.
func knownName(h fleet.Host) string {
	if h.Port == sshPort {
		return h.Address
	}
	return "[" + h.Address + "]:" + strconv.Itoa(h.Port)
}

const sshPort = 22

// enrolledText writes a comment for each key, and below it the line of a new key: so all of it is a
// known_hosts file, or fits an inventory.
func enrolledText(list []enrolled, form string) string {
	var b strings.Builder
	for _, e := range list {
		what := "# " + cli.Cell(e.Host) + " " + cli.Cell(e.Address)
		if e.Error != "" {
			fmt.Fprintf(&b, "%s: %s\n", what, cli.Cell(e.Error))
		}
		for _, k := range e.Keys {
			state := string(k.State)
			if k.Known != "" {
				state += ", was " + cli.Cell(k.Known)
			}
			if k.Written {
				state += ", written"
			}
			if k.Certifies != nil {
				state += ", " + k.Certifies.String()
			}
			fmt.Fprintf(&b, "%s %s %s %s\n", what, cli.Cell(k.Type), cli.Cell(k.Fingerprint), state)
			switch {
			case k.State != keyNew:
			case form == formInventory && k.Certifies != nil:
				fmt.Fprintf(&b, "host_ca: %q\n", cli.Cell(k.Key))
			case form == formInventory:
				fmt.Fprintf(&b, "host_key: %q\n", cli.Cell(k.Key))
			default:
				fmt.Fprintln(&b, cli.Cell(k.Line))
			}
		}
	}
	return b.String()
}

// shout prints loudly what a person must check, and returns the exit code.
func shout(s *cli.Screen, list []enrolled, f enrollFlags) int {
	code, written := cli.ExitOK, 0
	for _, e := range list {
		if e.Error != "" {
			code = cli.ExitNotAll
			s.Say("%s", s.Colours.Paint(cli.Red, cli.Cell(e.Error)))
		}
		for _, k := range e.Keys {
			if k.Written {
				written++
			}
			if k.State != keyChanged && k.State != keyRevoked || k.Written {
				continue
			}
			code = cli.ExitNotAll
			was := ""
			if k.Known != "" {
				was = ", the known one is " + cli.Cell(k.Known)
			}
			s.Say("%s", s.Colours.Paint(cli.Red, fmt.Sprintf("HOST KEY OF %s HAS %s: it shows %s %s%s. "+
				"Somebody may be in between, or the host was reinstalled: find out which",
				cli.Cell(e.Host), strings.ToUpper(string(k.State)), cli.Cell(k.Type), cli.Cell(k.Fingerprint),
				was)))
		}
	}
	if f.write != "" {
		s.Say("%s written to %s", cli.Count(written, "key"), f.write)
	}
	return code
}
