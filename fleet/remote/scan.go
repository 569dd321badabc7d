package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
)

// ScannedKey is a host key that a host has shown, and that nobody has vouched for.
type ScannedKey struct {
	Line        string // "ssh-ed25519 AAAA…", as an inventory has it
	Type        string // ssh-ed25519
	Fingerprint string // SHA256:…
}

// KeyTypes are the types of host keys that muster uses, the preferred ones first.
func KeyTypes() []string {
	return []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384,
		ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA}
}

// Scan connects to h, has it prove that it owns a host key of one of the types,
// and leaves without logging in. It trusts nobody and changes nothing: what the
// key is worth is for a person to say. The error is an [Error]; KindRefused means
// that the host has no key of these types.
func (c *Client) Scan(ctx context.Context, h fleet.Host, types ...string) (ScannedKey, error) {
	v, err := c.aim(h.Jump, h.Hop())
	if err != nil {
		return ScannedKey{}, err
	}
	shown, err := v.shown(ctx, signaturesOf(types), strings.Join(types, ", "))
	if err != nil {
		return ScannedKey{}, err
	}
	return ScannedKey{Line: authorizedLine(shown), Type: shown.Type(),
		Fingerprint: ssh.FingerprintSHA256(shown)}, nil
}

// shown is what the host proves itself with, if it is asked for these signatures. what
// names them.
func (v *visit) shown(ctx context.Context, signatures []string, what string) (
	ssh.PublicKey, error,
) {
	logins := &v.client.logins
	if err := logins.enter(ctx, v.door); err != nil {
		return nil, v.to.fault("scan", KindCancelled, err)
	}
	key, err := v.scan(ctx, signatures, what)
	logins.leave(v.door, KindOf(err))
	return key, err
}

func (v *visit) scan(ctx context.Context, signatures []string, what string) (ssh.PublicKey, error) {
	var over *bridge
	var err error
	if len(v.way) > 0 {
		if over, err = v.client.bridges.cross(ctx, v.way); err != nil {
			return nil, v.hindered(ctx, err)
		}
	}
	w, err := v.reach(ctx, over)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	stop := context.AfterFunc(ctx, func() { w.Close() })
	defer stop()

	var shown ssh.PublicKey
	hs := handshake{visit: v, cfg: v.client.cfg, wire: w}
	err = w.SetDeadline(time.Now().Add(hs.cfg.Handshake))
	if err == nil {
		_, _, _, err = ssh.NewClientConn(w, v.to.addr, &ssh.ClientConfig{
			Config:            v.suite.config,
			User:              v.hop.User,
			HostKeyAlgorithms: signatures,
			HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
				shown = key
				return errSeen
			},
			ClientVersion: "SSH-2.0-muster",
		})
	}
	if shown == nil {
		kind, err := hs.explainScan(err, what)
		return nil, v.to.fault("scan", cancelledOr(ctx, kind), err)
	}
	return shown, nil
}

// Fingerprint is that of a host key of an inventory, like SHA256:….
func Fingerprint(line string) (string, error) {
	key, err := parseHostKey(line)
	if err != nil {
		return "", err
	}
	return ssh.FingerprintSHA256(key), nil
}

// Revoked tells whether the file says of a key, in the form of an inventory, that
// nobody must trust it.
func (k *KnownHosts) Revoked(line string) bool {
	key, err := parseHostKey(line)
	return err == nil && k.revoked[string(key.Marshal())]
}

// errSeen ends a handshake of which the host key is all that was wanted.
var errSeen = errors.New("the host key was seen")

// signaturesOf names what a host may prove itself with that has keys of these types.
func signaturesOf(types []string) []string {
	var all []string
	for _, t := range types {
		if t == ssh.KeyAlgoRSA {
			all = append(all, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			continue
		}
		all = append(all, t)
	}
	return all
}

func (h *handshake) explainScan(err error, what string) (Kind, error) {
	var mismatch *ssh.AlgorithmNegotiationError
	if errors.As(err, &mismatch) && mismatch.What == "host key" {
		return KindRefused, fmt.Errorf("it offers host keys only for %q, and was asked for %s",
			mismatch.RequestedAlgorithms, what)
	}
	return h.explain(err)
}
