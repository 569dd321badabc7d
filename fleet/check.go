package fleet

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Limits for the fields of one host; without them one host could outweigh a fleet.
const (
	addressMax  = 253  // bytes, as DNS has it
	userMax     = 253  // bytes
	pathMax     = 4096 // bytes, PATH_MAX of Linux
	hostKeysMax = 32
	labelsMax   = 64
	listMax     = 64 // principals, authorities, revoked keys
)

// checkHost returns the mistakes in the fields of a host, and normalizes its host
// keys. The checks below return errors that continue a sentence which begins with the
// name of the field.
func checkHost(h *Host) []error {
	var keysErr, casErr, revokedErr error
	h.HostKeys, keysErr = normalHostKeys(h.HostKeys, hostKeysMax)
	h.HostCAs, casErr = normalHostKeys(h.HostCAs, listMax)
	h.Revoked, revokedErr = normalHostKeys(h.Revoked, listMax)
	var errs []error
	if err := checkHostName(h.Name); err != nil {
		errs = append(errs, err)
	}
	for _, c := range []struct {
		field string
		err   error
	}{
		{"address", checkAddress(h.Address)},
		{"port", checkPort(h.Port)},
		{"user", checkUser(h.User)},
		{"key", optional(checkPath)(h.Key)},
		{"host_keys", keysErr},
		{"customer", optional(CheckName)(h.Customer)},
		{"zone", CheckZone(h.Zone)},
		{"group", optional(CheckName)(h.Group)},
		{"fence", checkFence(string(h.Fence))},
		{"jump", checkWay(h.Jump)},
		{"certificate", optional(checkPath)(h.Certificate)},
		{"host_cas", casErr},
		{"principals", checkEach(h.Principals, checkPrincipal)},
		{"revoked", revokedErr},
		{"profile", optional(checkProfile)(h.Profile)},
		{"become", optional(checkBecome)(h.Become)},
		{"become_user", optional(checkUser)(h.BecomeUser)},
	} {
		if c.err != nil {
			errs = append(errs, fmt.Errorf("%s %w", c.field, c.err))
		}
	}
	if len(h.Labels) > labelsMax {
		errs = append(errs, fmt.Errorf("labels: %d of them: at most %d", len(h.Labels), labelsMax))
	}
	return errs
}

// CheckField returns an error unless a field of a host can have that value. The fields are
// address, port, user, become_user, key, host_key, known_hosts, customer, zone, group and
// fence. The error continues a sentence which begins with the name of the field.
func CheckField(field, value string) error {
	switch field {
	case "address":
		return checkAddress(value)
	case "port":
		n, err := strconv.Atoi(value)
		if err != nil || !isDecimal(value) {
			return fmt.Errorf("%q is not a number: want 1 to 65535", abbreviate(value))
		}
		return checkPort(n)
	case "user", "become_user":
		return checkUser(value)
	case "key", "known_hosts":
		return checkPath(value)
	case "host_key":
		_, err := normalHostKey(value)
		return err
	case "customer", "group":
		return CheckName(value)
	case "zone":
		return CheckZone(value)
	case "fence":
		return checkFence(value)
	}
	return fmt.Errorf("%q is no field of a host", abbreviate(field))
}

// CheckLabel returns an error unless a host can have that label.
func CheckLabel(key, value string) error {
	return errors.Join(checkLabel(key, value)...)
}

// optional returns a check that accepts the empty value and otherwise calls check.
func optional(check func(string) error) func(string) error {
	return func(s string) error {
		if s == "" {
			return nil
		}
		return check(s)
	}
}

// checkHostName is CheckName, but refuses the word that selects every host.
func checkHostName(s string) error {
	if s == everyHost {
		return fmt.Errorf("name %q means every host in a selector: choose another", s)
	}
	return CheckName(s)
}

// checkAddress accepts an IP address or a DNS name and nothing else: no user, no
// port, nothing that a program could take for an option, and no abbreviated
// address, because resolvers expand those differently.
func checkAddress(s string) error {
	switch {
	case s == "":
		return errors.New("is empty: want an IP address or a DNS name")
	case len(s) > addressMax:
		return fmt.Errorf("%q has %d bytes: at most %d", abbreviate(s), len(s), addressMax)
	case s[0] == '-':
		return fmt.Errorf("%q starts with '-': want an IP address or a DNS name", s)
	case strings.ContainsFunc(s, isBlankOrControl):
		return fmt.Errorf("%q has a blank or a control character: remove it", s)
	case strings.Contains(s, "://"):
		return fmt.Errorf("%q is a URL: want an IP address or a DNS name", s)
	case strings.Contains(s, "@"):
		return fmt.Errorf("%q has a user in it: put that under user", s)
	}
	if ip, err := netip.ParseAddr(s); err == nil {
		return checkIP(ip, s)
	}
	if strings.HasPrefix(s, "[") {
		return fmt.Errorf("%q: write IPv6 without brackets, and a port under port", s)
	}
	if _, port, found := strings.Cut(s, ":"); found && !strings.Contains(port, ":") {
		return fmt.Errorf("%q has a port in it: put that under port", s)
	}
	return checkDNSName(s)
}

func checkIP(ip netip.Addr, s string) error {
	if ip.IsUnspecified() || ip.IsMulticast() {
		return fmt.Errorf("%q is not the address of one host", s)
	}
	if ip.Zone() != "" && CheckName(ip.Zone()) != nil {
		return fmt.Errorf("%q: %q cannot be the name of an interface", s, ip.Zone())
	}
	return nil
}

func checkDNSName(s string) error {
	parts := strings.Split(strings.TrimSuffix(s, "."), ".")
	for _, p := range parts {
		switch {
		case p == "" || len(p) > 63 || p[0] == '-' || p[len(p)-1] == '-':
			return fmt.Errorf("%q: %q cannot be a part of a DNS name: "+
				"want 1 to 63 bytes, no '-' at the ends", s, p)
		case strings.ContainsFunc(p, notInName):
			return fmt.Errorf("%q: want letters, digits, '.', '-' and '_', or an IP address", s)
		}
	}
	// A DNS name cannot end in a number, so this is a mistyped or abbreviated address.
	// Resolvers would each expand it in their own way.
	if last := parts[len(parts)-1]; isNumber(last) {
		return fmt.Errorf("%q is not an IP address: want four numbers up to 255, "+
			"without leading zeros", s)
	}
	return nil
}

// isNumber reports whether resolvers take s for a part of an IPv4 address.
func isNumber(s string) bool {
	if hex, found := strings.CutPrefix(strings.ToLower(s), "0x"); found {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(s, "0123456789") == ""
}

func checkPort(n int) error {
	if n < 1 || n > 65535 {
		return fmt.Errorf("%d: want 1 to 65535", n)
	}
	return nil
}

// checkUser accepts more than login names of Unix, because some bastions read the target
// host from the login name.
func checkUser(s string) error {
	switch {
	case s == "":
		return errors.New("is empty: want a login name")
	case len(s) > userMax:
		return fmt.Errorf("%q has %d bytes: at most %d", abbreviate(s), len(s), userMax)
	case s[0] == '-':
		return fmt.Errorf("%q starts with '-': want a login name", s)
	case strings.ContainsFunc(s, isBlankOrControl):
		return fmt.Errorf("%q has a blank or a control character: remove it", s)
	}
	return nil
}

// checkPath wants an absolute path, because any node may read it.
func checkPath(s string) error {
	switch {
	case len(s) > pathMax:
		return fmt.Errorf("path %q has %d bytes: at most %d", abbreviate(s), len(s), pathMax)
	case strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Errorf("path %q has a control character: remove it", abbreviate(s))
	case !path.IsAbs(s):
		return fmt.Errorf("path %q depends on where it is read: want an absolute path",
			abbreviate(s))
	}
	return nil
}

func checkFence(s string) error {
	fences := []string{string(FenceAuto), string(FenceNone), string(FenceRequired)}
	if slices.Contains(fences, s) {
		return nil
	}
	return fmt.Errorf("%q: want auto, none or required%s", abbreviate(s), suggest(s, fences))
}

// checkLabel returns the reasons why a selector could not name this label.
func checkLabel(key, value string) []error {
	var errs []error
	if slices.Contains(builtinLabels(), key) {
		errs = append(errs, fmt.Errorf("label %q is a field of its own: give it there", key))
	}
	if len(validation.IsQualifiedName(key)) > 0 {
		errs = append(errs, fmt.Errorf("label key %q: want letters, digits, '-', '_' and '.', "+
			"a letter or digit at both ends, at most 63 bytes", abbreviate(key)))
	}
	if len(validation.IsValidLabelValue(value)) > 0 {
		errs = append(errs, fmt.Errorf("label %s: value %q: want letters, digits, '-', '_' and '.', "+
			"a letter or digit at both ends, at most 63 bytes",
			abbreviate(strconv.Quote(key)), abbreviate(value)))
	}
	return errs
}

// normalHostKeys checks host keys and cuts each to "type base64", so that a changed
// comment behind a key does not change the version of the inventory.
func normalHostKeys(keys []string, most int) ([]string, error) {
	if len(keys) > most {
		return nil, fmt.Errorf("has %d keys: at most %d", len(keys), most)
	}
	var normal []string
	for _, k := range keys {
		n, err := normalHostKey(k)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(normal, n) {
			normal = append(normal, n)
		}
	}
	return normal, nil
}

func normalHostKey(s string) (string, error) {
	types := []string{
		"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
		"ssh-rsa", "ssh-dss", "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com",
	}
	words := strings.Fields(s)
	switch {
	case len(words) == 0:
		return "", errors.New(`is empty: want "ssh-ed25519 AAAA…"`)
	case strings.ContainsFunc(s, unicode.IsControl):
		return "", fmt.Errorf("%q has a line break or a control character: give each key by itself",
			abbreviate(s))
	case !slices.Contains(types, words[0]) && len(words) > 1 && slices.Contains(types, words[1]):
		return "", fmt.Errorf("%q starts with a host name: start with the type, %s",
			abbreviate(s), words[1])
	case !slices.Contains(types, words[0]):
		return "", fmt.Errorf("%q has no known type in front%s: want one of %s",
			abbreviate(s), suggest(words[0], types), strings.Join(types, ", "))
	case len(words) == 1:
		return "", fmt.Errorf("%q has only a type: want the key behind it", s)
	}
	blob, err := base64.StdEncoding.Strict().DecodeString(words[1])
	if err != nil {
		return "", fmt.Errorf("%q is not valid base64: copy the whole line of the .pub file",
			abbreviate(s))
	}
	if !startsWithType(blob, words[0]) {
		return "", fmt.Errorf("%q is damaged or not of type %s: "+
			"copy the whole line of the .pub file", abbreviate(s), words[0])
	}
	return words[0] + " " + words[1], nil
}

// startsWithType reports whether a key in wire format, which repeats its type at
// the front, has that type and some content behind it.
func startsWithType(blob []byte, typ string) bool {
	if len(blob) < 4 || uint64(binary.BigEndian.Uint32(blob)) != uint64(len(typ)) {
		return false
	}
	return len(blob) > 4+len(typ) && string(blob[4:4+len(typ)]) == typ
}

func isBlankOrControl(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
