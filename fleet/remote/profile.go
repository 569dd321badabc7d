package remote

import (
	"fmt"
	"slices"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
	"muster/internal/wording"
)

// suite holds the algorithms that are offered to a host.
type suite struct {
	legacy bool
	config ssh.Config
}

// suiteOf returns the algorithms of a profile. The normal profile excludes broken algorithms that
// the library still enables by default, and includes sound ones that it disables. The legacy
// profile adds those of old appliances behind all better ones, but neither RC4 nor ciphers
// that nobody needs.
func suiteOf(profile string) (suite, error) {
	sound := ssh.SupportedAlgorithms()
	s := suite{config: ssh.Config{
		KeyExchanges: sound.KeyExchanges, Ciphers: sound.Ciphers, MACs: sound.MACs,
	}}
	switch profile {
	case "":
		return s, nil
	case fleet.ProfileLegacy:
		s.legacy = true
		s.config.KeyExchanges = append(s.config.KeyExchanges, legacyKeyExchanges()...)
		s.config.Ciphers = append(s.config.Ciphers,
			ssh.InsecureCipherAES128CBC, ssh.InsecureCipherTripleDESCBC)
		s.config.MACs = append(s.config.MACs, ssh.InsecureHMACSHA196)
		return s, nil
	}
	return s, fmt.Errorf("profile %q is not known: want %s or none", profile, fleet.ProfileLegacy)
}

func legacyKeyExchanges() []string {
	return []string{ssh.InsecureKeyExchangeDHGEXSHA1, ssh.InsecureKeyExchangeDH14SHA1,
		ssh.InsecureKeyExchangeDH1SHA1}
}

// advice suggests the legacy profile if it would help with a host that offers only these
// algorithms.
func (s suite) advice(offered []string) string {
	if s.legacy {
		return "; not even the legacy profile has one of these"
	}
	old := append(legacyKeyExchanges(), ssh.InsecureCipherAES128CBC, ssh.InsecureCipherTripleDESCBC,
		ssh.InsecureHMACSHA196)
	if slices.ContainsFunc(offered, func(name string) bool { return slices.Contains(old, name) }) {
		return tryLegacy
	}
	return ""
}

const tryLegacy = "; if it is an old appliance that knows nothing better, give it the profile " +
	"legacy in the inventory"

// advice suggests the legacy profile if it would help with a host that has a known key, but
// proves it only by one of these signatures.
func (t trust) advice(offered []string) string {
	known := func(key ssh.PublicKey) bool { return slices.Contains(offered, key.Type()) }
	if !t.legacy && slices.ContainsFunc(t.keys, known) {
		return tryLegacy
	}
	return ""
}

// About describes a connection for people: the identities and the negotiated algorithms.
type About struct {
	Server      string   `json:"server"`              // the server's version string
	Profile     string   `json:"profile"`             // from the inventory; mostly empty
	HostKey     string   `json:"host_key"`            // type and fingerprint of the key that it showed
	Authority   string   `json:"authority,omitempty"` // who certified it; empty: the inventory has the key
	KeyExchange string   `json:"key_exchange"`
	Signature   string   `json:"signature"` // algorithm by which the host proved its key
	CipherIn    string   `json:"cipher_in"`
	CipherOut   string   `json:"cipher_out"`
	MACIn       string   `json:"mac_in,omitempty"` // empty if the cipher needs none
	MACOut      string   `json:"mac_out,omitempty"`
	Login       string   `json:"login"`                 // our credentials
	LoginUntil  string   `json:"login_until,omitempty"` // end of the user certificate, if any
	Jump        []string `json:"jump,omitempty"`        // names of the jump hosts
}

// About returns what the host and the client negotiated at the login.
func (c *Conn) About() About { return c.about }

func (h *handshake) tell(conn ssh.Conn) About {
	a := About{Server: wording.Clip(Printable(conn.ServerVersion())), Login: h.login.what,
		Profile: h.hop.Profile, Jump: h.to.jump}
	if h.shown != nil {
		a.HostKey = describe(plainKey(h.shown))
		if cert, ok := h.shown.(*ssh.Certificate); ok {
			a.Authority = describe(cert.SignatureKey)
		}
	}
	if !h.login.until.IsZero() {
		a.LoginUntil = h.login.until.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	if m, ok := conn.(ssh.AlgorithmsConnMetadata); ok {
		n := m.Algorithms()
		a.KeyExchange, a.Signature = n.KeyExchange, n.HostKey
		a.CipherIn, a.MACIn = n.Read.Cipher, n.Read.MAC
		a.CipherOut, a.MACOut = n.Write.Cipher, n.Write.MAC
	}
	return a
}
