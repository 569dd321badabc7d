package remote

import (
	"fmt"
	"slices"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
	"muster/internal/wording"
)

// suite is what is offered to a host.
type suite struct {
	legacy bool
	config ssh.Config
}

// suiteOf returns what a profile offers. The normal one leaves out what the library
// still has on by default although it has been broken, and takes in what is sound
// and off; the legacy one adds what old appliances know, after all that is better.
// RC4 and ciphers that nobody needs stay out of it.
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

// advice says whether the legacy profile would have helped against a host that
// offers only these.
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

// advice says whether the legacy profile would have helped against a host that has
// a known key, and proves it only by a signature of these.
func (t trust) advice(offered []string) string {
	known := func(key ssh.PublicKey) bool { return slices.Contains(offered, key.Type()) }
	if !t.legacy && slices.ContainsFunc(t.keys, known) {
		return tryLegacy
	}
	return ""
}

// About is what two sides agreed on, for people to look at.
type About struct {
	Server      string   `json:"server"`              // the other side's name for itself
	Profile     string   `json:"profile"`             // of the inventory; mostly empty
	HostKey     string   `json:"host_key"`            // type and fingerprint of what it showed
	Authority   string   `json:"authority,omitempty"` // who certified that key; empty: it is known itself
	KeyExchange string   `json:"key_exchange"`
	Signature   string   `json:"signature"` // algorithm by which it proved to have the key
	CipherIn    string   `json:"cipher_in"`
	CipherOut   string   `json:"cipher_out"`
	MACIn       string   `json:"mac_in,omitempty"` // empty where the cipher needs none
	MACOut      string   `json:"mac_out,omitempty"`
	Login       string   `json:"login"`                 // what we showed
	LoginUntil  string   `json:"login_until,omitempty"` // end of the user certificate, if there is one
	Jump        []string `json:"jump,omitempty"`        // names of the jump hosts
}

// About tells what was agreed on with the host at the login.
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
