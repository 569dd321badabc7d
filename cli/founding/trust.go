package founding

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"muster/internal/serverkey"
	"muster/internal/settings"
	"muster/internal/sshsig"
	"muster/trust"
)

// madeTrust is the part of the answer of init for nodes.
type madeTrust struct {
	Dir    string `json:"dir"`
	Made   bool   `json:"made"`           // false: it has a policy already
	Mode   string `json:"mode,omitempty"` // of the policy that was made
	Signer string `json:"signer"`         // the line of allowed_signers for the servers
}

// MakeTrust makes what nodes trust in a folder; "": in trust, beside the key of servers. A file
// that is there stays as it is.
func (m *Made) MakeTrust(dir string) error {
	if dir == "" {
		dir = filepath.Join(filepath.Dir(m.File), "trust")
	}
	m.Trust.Dir = dir
	var err error
	if m.Trust.Signer, err = signerLine(m.keys); err != nil {
		return err
	}
	owner := serviceUser()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(there, func(e os.DirEntry) bool { return e.Name() == name })
	}
	if len(there) > 0 && !has(settings.TrustNodeKey) {
		return fmt.Errorf("%s has no %s, which all nodes share: copy it from one of them; if no node "+
			"has it any more, remove the folder, call init again, and copy the new one to all nodes", dir,
			settings.TrustNodeKey)
	}
	mode := trust.Require
	if !m.Made && len(there) == 0 { // there may be tasks that nobody has signed
		mode = trust.Warn
	}
	var raw [serverkey.Size]byte
	rand.Read(raw[:]) // never fails
	key, signers := nodeKeyFile(m.Installation, raw), signersFile(m.Trust.Signer)
	err = errors.Join(createNew(filepath.Join(dir, settings.TrustNodeKey), key, 0o400, owner),
		createNew(filepath.Join(dir, settings.TrustSigners), signers, 0o644, -1))
	if err != nil {
		return err
	}
	err = create(filepath.Join(dir, settings.TrustPolicy), policyFile(mode), 0o644, -1)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err == nil {
		m.Trust.Made, m.Trust.Mode = true, string(mode)
	}
	return err
}

// createNew is create for a file that may be there already.
func createNew(path, text string, mode os.FileMode, owner int) error {
	if err := create(path, text, mode, owner); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// signerLine returns the line of allowed_signers for the servers.
func signerLine(k serverkey.Keys) (string, error) {
	key, err := sshsig.KeyText(k.Publics(serverkey.Orders)[0])
	return trust.SignerLine(k.Installation(), key), err
}

func nodeKeyFile(installation string, raw [serverkey.Size]byte) string {
	return serverkey.FileFor(installation, raw, `# The key of the nodes of one muster installation, by which they know the state of jobs as their
# own. Copy this folder to each node. The first key makes, all keys check.
`)
}

func signersFile(line string) string {
	return `# Whose signatures count on this node, as in ssh-keygen(1). Servers have names with "` +
		trust.ServerPrefix + `";
# add a line for each person who signs orders, with the names by which muster knows that person:
#   os:alice,user:alice namespaces="` + trust.NamespaceOrder + `" sk-ssh-ed25519@openssh.com AAAA…
` + line + "\n"
}

func policyFile(mode trust.Mode) string {
	return `# By whose word this node acts: docs/TRUST.md. The first rule that fits a job counts.
# mode: off, warn or require. level: server or person; or people: 2.
rules:
  # - runbooks: [firmware]
  #   hosts: customer=acme
  #   people: 2
  #   mode: require
  - level: server
    mode: ` + string(mode) + "\n"
}
