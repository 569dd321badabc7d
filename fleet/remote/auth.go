package remote

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"muster/fleet"
)

// agentKeysMax bounds how many keys of an agent a login offers. A host closes the connection
// after its sixth refusal, and some hosts penalize the address for minutes.
const agentKeysMax = 5

// login holds the credentials that the client offers to a host.
type login struct {
	user    string
	signers []ssh.Signer
	what    string    // describes them in errors
	until   time.Time // end of the certificate; zero if there is none
	close   func()
}

// login prepares exactly one key if the inventory names one, else the keys of the agent.
func (c *Client) login(ctx context.Context, h fleet.Hop, legacy bool) (login, error) {
	l, err := c.keyLogin(h)
	if h.Key == "" {
		l, err = c.agentLogin(ctx)
	}
	if err != nil {
		return login{}, err
	}
	l.user = h.User
	for i := range l.signers {
		l.signers[i] = limited(l.signers[i], legacy)
	}
	if h.Certificate != "" {
		if err := c.certify(&l, h.Certificate); err != nil {
			l.close()
			return login{}, err
		}
	}
	l.signers = l.signers[:min(len(l.signers), agentKeysMax)]
	return l, nil
}

func (c *Client) keyLogin(h fleet.Hop) (login, error) {
	if h.Key == "" {
		return login{}, nil
	}
	if err := private(h.Key); err != nil {
		return login{}, err
	}
	signer, err := c.keys.load(h.Key, "private key", func(text []byte) (ssh.Signer, error) {
		return parseKey(text, c.cfg.PassphraseFile)
	})
	if err != nil {
		return login{}, err
	}
	return login{
		signers: []ssh.Signer{signer},
		what:    fmt.Sprintf("key %s (%s)", h.Key, describe(signer.PublicKey())),
		close:   func() {},
	}, nil
}

func (c *Client) agentLogin(ctx context.Context) (login, error) {
	if c.cfg.AgentSocket == "" {
		return login{}, errors.New("the inventory names no key for it and there is no SSH agent: " +
			"set key in the inventory, or start an agent and set SSH_AUTH_SOCK")
	}
	dialer := net.Dialer{Timeout: c.cfg.Auth}
	conn, err := dialer.DialContext(ctx, "unix", c.cfg.AgentSocket)
	if err != nil {
		return login{}, fmt.Errorf("SSH agent: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	closeAgent := func() {
		stop()
		conn.Close()
	}

	// The agent signs at the very end of the login, so the deadline covers all of it.
	err = conn.SetDeadline(time.Now().Add(c.cfg.TCP + c.cfg.Handshake + c.cfg.Auth))
	if err != nil {
		closeAgent()
		return login{}, fmt.Errorf("SSH agent: %w", err)
	}
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		closeAgent()
		return login{}, fmt.Errorf("SSH agent at %s: %w", c.cfg.AgentSocket, err)
	}
	if len(signers) == 0 {
		closeAgent()
		return login{}, fmt.Errorf("SSH agent at %s has no keys: add one with ssh-add",
			c.cfg.AgentSocket)
	}
	n := min(len(signers), agentKeysMax)
	return login{
		signers: signers,
		what:    fmt.Sprintf("the %d keys of the SSH agent", n),
		close:   closeAgent,
	}, nil
}

// certify replaces the keys of a login by the certificate at path. The certificate determines
// which of the keys it belongs to.
func (c *Client) certify(l *login, path string) error {
	cert, err := c.certs.load(path, "certificate", parseUserCertificate)
	if err != nil {
		return err
	}
	from, until := certTimes(cert)
	now := time.Now()
	switch need := c.cfg.TCP + c.cfg.Handshake + c.cfg.Auth; {
	case now.Before(from):
		return fmt.Errorf("certificate %s holds only from %s on: is the clock of this node right?",
			path, clock(from))
	case !until.IsZero() && !now.Add(need).Before(until):
		return fmt.Errorf("certificate %s ended at %s, or will before a login is over: renew it",
			path, clock(until))
	}
	for _, signer := range l.signers {
		if !bytes.Equal(signer.PublicKey().Marshal(), cert.Key.Marshal()) {
			continue
		}
		certified, err := ssh.NewCertSigner(cert, signer)
		if err != nil {
			return fmt.Errorf("certificate %s: %w", path, err)
		}
		l.signers, l.until = []ssh.Signer{certified}, until
		l.what = fmt.Sprintf("certificate %s (%s, for %q)", path, describe(cert.Key),
			cert.ValidPrincipals)
		return nil
	}
	return fmt.Errorf("certificate %s is for the key %s, and not for %s", path, describe(cert.Key),
		l.what)
}

func parseUserCertificate(text []byte) (*ssh.Certificate, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey(text)
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	cert, ok := key.(*ssh.Certificate)
	switch {
	case !ok:
		return nil, errors.New("it is a public key and no certificate: want what ssh-keygen -s wrote, " +
			"which ends in -cert.pub")
	case cert.CertType != ssh.UserCert:
		return nil, errors.New("it is a certificate of a host: want one of a user")
	}
	return cert, nil
}

// parseKey reads a private key. It needs the passphrase only if the key is encrypted.
func parseKey(pem []byte, passphraseFile string) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(pem)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		return unlockKey(pem, passphraseFile)
	}
	if err != nil {
		return nil, noKey(pem, err)
	}
	return signer, nil
}

// noKey explains what a file contains instead of a private key.
func noKey(text []byte, err error) error {
	_, _, _, _, public := ssh.ParseAuthorizedKey(text)
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return errors.New("it is empty: want a private key, as ssh-keygen writes it")
	case public == nil:
		return errors.New("it is a public key: name the private one, mostly the file without .pub")
	case !bytes.Contains(text, []byte("-----BEGIN ")):
		return errors.New("it is no private key: want what ssh-keygen writes, which begins with " +
			"-----BEGIN")
	}
	return fmt.Errorf("it cannot be read, is it whole? (%w)", err)
}

func unlockKey(pem []byte, passphraseFile string) (ssh.Signer, error) {
	if passphraseFile == "" {
		return nil, errors.New("it has a passphrase: name a file with it under ssh.passphrase_file, " +
			"put the key into an SSH agent, or use one without")
	}
	passphrase, err := readSecret(passphraseFile)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKeyWithPassphrase(pem, passphrase)
	clear(passphrase)
	switch {
	case errors.Is(err, x509.IncorrectPasswordError):
		return nil, fmt.Errorf("the passphrase in %s does not open it", passphraseFile)
	case err != nil:
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	return signer, nil
}

// limited makes an RSA key sign with SHA-2 only. Without it, the library falls back to SHA-1
// if a host does not announce what it accepts. That is right only for hosts with the legacy
// profile, which know nothing else.
func limited(s ssh.Signer, legacy bool) ssh.Signer {
	if s.PublicKey().Type() != ssh.KeyAlgoRSA {
		return s
	}
	capable, ok := s.(ssh.AlgorithmSigner)
	if !ok {
		return s
	}
	names := []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	if legacy {
		names = append(names, ssh.KeyAlgoRSA)
	}
	able, err := ssh.NewSignerWithAlgorithms(capable, names)
	if err != nil {
		return s
	}
	return able
}

// lasts returns an error if the credentials expire within d. Stopping a command needs a
// second login, so they must outlast the command.
func (l login) lasts(d time.Duration) error {
	if l.until.IsZero() || time.Now().Add(d).Before(l.until) {
		return nil
	}
	return fmt.Errorf("%s ends at %s, before a command that needs it may end (%s): "+
		"renew it", strings.TrimSpace(l.what), clock(l.until), d)
}
