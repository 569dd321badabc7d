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

// ScannedKey is a host key that a host has shown and that nobody has verified yet.
type ScannedKey struct {
	Line        string // "ssh-ed25519 AAAA…", the format of an inventory
	Type        string // ssh-ed25519
	Fingerprint string // SHA256:…
}

// KeyTypes returns the types of host keys that muster uses, the preferred ones first.
func KeyTypes() []string {
	return []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384,
		ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA}
}

// Scan connects to h, lets it prove that it owns a host key of one of the types, and leaves
// without logging in. It trusts nobody and changes nothing: a person must decide whether the
// key is right. The error is an [Error]; KindRefused means that the host has no key of these
// types.
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

// shown returns the key by which the host proves its identity if only these signatures are
// accepted. what names them in errors.
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

// Fingerprint returns the fingerprint of a host key of an inventory, such as SHA256:….
func Fingerprint(line string) (string, error) {
	key, err := parseHostKey(line)
	if err != nil {
		return "", err
	}
	return ssh.FingerprintSHA256(key), nil
}

// Revoked reports whether the file has revoked a key, which is given in the format of an
// inventory.
func (k *KnownHosts) Revoked(line string) bool {
	key, err := parseHostKey(line)
	return err == nil && k.revoked[string(key.Marshal())]
}

// errSeen aborts a handshake as soon as the host key is known.
var errSeen = errors.New("the host key was seen")

// signaturesOf returns the signature algorithms for keys of these types.
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
