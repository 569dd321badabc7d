package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"muster/fleet"
	reading "muster/internal/files"
)

// KnownHostsMax bounds a known_hosts file.
const KnownHostsMax = 32 << 20 // bytes

// KnownHosts is a known_hosts file of OpenSSH. Publishing an inventory takes the keys of
// hosts from such files.
type KnownHosts struct {
	db      *knownhosts.HostKeyDB
	revoked map[string]bool // by the wire format of the key

	revokedLines []string // the same keys, in the format of an inventory
}

// ReadKnownHosts reads the file at path. Its lines may be hashed, contain patterns, and be
// marked as revoked. The error names file and line.
func ReadKnownHosts(path string) (*KnownHosts, error) {
	text, err := reading.Read(path, KnownHostsMax)
	if err != nil {
		return nil, fmt.Errorf("known_hosts: %w", err)
	}
	db, err := openDB(path)
	if err != nil {
		return nil, err
	}
	revoked, err := revokedKeys(text)
	if err != nil {
		return nil, fmt.Errorf("known_hosts %s: a line with @revoked is wrong: want @revoked, hosts, "+
			"type, key", path)
	}
	k := &KnownHosts{db: db, revoked: revoked}
	for _, blob := range slices.Sorted(maps.Keys(revoked)) {
		key, err := ssh.ParsePublicKey([]byte(blob))
		if err != nil {
			return nil, fmt.Errorf("known_hosts %s: a key that is @revoked cannot be read", path)
		}
		k.revokedLines = append(k.revokedLines, authorizedLine(key))
	}
	return k, nil
}

// openDB lets the library read a file, which it only does by path. The path in /proc refers to
// the file that is already open, even if somebody renames or replaces it meanwhile.
func openDB(path string) (*knownhosts.HostKeyDB, error) {
	f, _, err := reading.Open(path)
	if err != nil {
		return nil, fmt.Errorf("known_hosts: %w", err)
	}
	defer f.Close()
	db, err := knownhosts.NewDB(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return nil, knownError(path, err)
	}
	return db, nil
}

// lineOf finds the line number in an error of the library.
var lineOf = regexp.MustCompile(`/proc/self/fd/\d+:(\d+): `)

// knownError names the invalid line without quoting it, because a link may lead to a file that
// the reader of the message is not allowed to read.
func knownError(path string, err error) error {
	place := path
	if m := lineOf.FindStringSubmatch(err.Error()); m != nil {
		place += ":" + m[1]
	}
	return fmt.Errorf("known_hosts %s: this is no line of a known_hosts file: want hosts, type and "+
		"key, as ssh-keyscan prints them", place)
}

// Keys returns the host keys for address and port in the format of an inventory,
// "ssh-ed25519 AAAA…", in the order of the file; none if the file does not know the host.
// It leaves out keys of unusable types, keys of certificate authorities, and revoked
// keys.
func (k *KnownHosts) Keys(address string, port int) []string {
	var lines []string
	for _, key := range k.db.HostKeys(net.JoinHostPort(address, strconv.Itoa(port))) {
		if key.Cert || k.revoked[string(key.Marshal())] || len(algorithmsOf(key, false)) == 0 {
			continue
		}
		lines = append(lines, authorizedLine(key.PublicKey))
	}
	return lines
}

// Trust returns everything that the file has for address and port: the keys of the host, the
// keys of authorities that may sign one, and all revoked keys.
func (k *KnownHosts) Trust(address string, port int) fleet.Trust {
	t := fleet.Trust{HostKeys: k.Keys(address, port)}
	for _, key := range k.db.HostKeys(net.JoinHostPort(address, strconv.Itoa(port))) {
		if key.Cert && !k.revoked[string(key.Marshal())] {
			t.HostCAs = append(t.HostCAs, authorizedLine(key.PublicKey))
		}
	}
	t.Revoked = slices.Clone(k.revokedLines)
	return t
}

func authorizedLine(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// revokedKeys returns the keys marked @revoked. The library refuses them when a host shows
// one, but still lists a key that another line has without the mark.
func revokedKeys(text []byte) (map[string]bool, error) {
	revoked := make(map[string]bool)
	if !bytes.Contains(text, []byte("@revoked")) {
		return revoked, nil
	}
	for {
		marker, _, key, _, rest, err := ssh.ParseKnownHosts(text)
		if errors.Is(err, io.EOF) {
			return revoked, nil
		}
		if err != nil {
			return nil, err
		}
		if marker == "revoked" {
			revoked[string(key.Marshal())] = true
		}
		text = rest
	}
}
