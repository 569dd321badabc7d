package playbook

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/seal"
)

// A Play is one run of a playbook for one host.
type Play struct {
	Host    fleet.Host
	File    string               // of the playbook, a path within the folder of playbooks
	Vars    map[string]string    // data, never templates
	Secrets map[string]seal.Text // likewise
	Become  seal.Text            // the password of sudo; empty: sudo asks for none
	Groups  []string             // of the host, beside those of its labels

	// Inventory is a path within the folder of playbooks, of an inventory whose groups and variables
	// hold, too; the play is limited to the host. Empty: there is none.
	Inventory string
	Vault     seal.Text // the password of Ansible's vault; empty: ansible.cfg says it
	Scope
	Bound time.Duration
	Stop  <-chan struct{} // closed when the play is to stop; nil: it never is
	Live  io.Writer       // gets what the play says at once; may be nil
}

// A Player runs a playbook on this node. The error is one of package remote; Sent means that a task
// had begun. findable means that [Sweep] finds on the host the processes of that task.
type Player func(ctx context.Context, p Play) (r remote.Result, findable bool, err error)

// A Scope says how much of a playbook runs.
type Scope struct {
	Tags, SkipTags []string
	Check          bool // change nothing
	Diff           bool // show what would change, or does
}

// A Place says where the files of a play are, and by what the node logs in.
type Place struct {
	Dir            string // private to the play; without blanks
	Agent          string // the socket of an SSH agent; empty: there is none
	PassphraseFile string // has the passphrase of encrypted keys; empty: there is none
	Inventory      string // the path of the inventory beside ours; empty: there is none
}

// The files of a play.
const (
	inventoryFile  = "hosts.yml"
	varsFile       = "vars.yml"
	sshFile        = "ssh_config"
	knownFile      = "known_hosts"
	askFile        = "askpass"
	vaultFile      = "vault"
	callbackFolder = "callback"
)

// EventsFD is the file descriptor to which the plugin reports events.
const EventsFD = 4

// Args returns the arguments of ansible-playbook for the playbook at path. None of them is secret.
func (p Play) Args(w Place, path string) []string {
	args := []string{"-i", w.Dir + "/" + inventoryFile, "-e", "@" + w.Dir + "/" + varsFile,
		"--forks", "1"}
	if w.Inventory != "" { // of two that say the same, the later one counts
		args = append([]string{"-i", w.Inventory, "--limit", p.Host.Name}, args...)
	}
	if p.Vault != "" {
		args = append(args, "--vault-password-file", w.Dir+"/"+vaultFile)
	}
	if p.Check {
		args = append(args, "--check")
	}
	if p.Diff {
		args = append(args, "--diff")
	}
	if len(p.Tags) > 0 {
		args = append(args, "--tags", strings.Join(p.Tags, ","))
	}
	if len(p.SkipTags) > 0 {
		args = append(args, "--skip-tags", strings.Join(p.SkipTags, ","))
	}
	return append(args, "--", path)
}

// Env returns the environment of ansible-playbook, which overrules the ansible.cfg of the
// playbook; config is the path of that, if there is one.
func (p Play) Env(w Place, config string) []string {
	env := []string{"LANG=C.UTF-8", "HOME=" + w.Dir, "TMPDIR=" + w.Dir,
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"ANSIBLE_HOME=" + w.Dir, "ANSIBLE_LOCAL_TEMP=" + w.Dir + "/local",
		"ANSIBLE_CALLBACK_PLUGINS=" + w.Dir + "/" + callbackFolder,
		"ANSIBLE_STDOUT_CALLBACK=muster",
		"ANSIBLE_HOST_KEY_CHECKING=True",
		"ANSIBLE_RETRY_FILES_ENABLED=False",
		"ANSIBLE_NOCOLOR=1", "ANSIBLE_FORCE_COLOR=0", "ANSIBLE_DEVEL_WARNING=False",
		"ANSIBLE_DISPLAY_SKIPPED_HOSTS=True", "ANSIBLE_DISPLAY_OK_HOSTS=True",
		"PYTHONDONTWRITEBYTECODE=1"}
	reads := "ansible.builtin.yaml"
	if w.Inventory != "" {
		reads = "script,auto,yaml,ini,toml" // those that Ansible has enabled by itself, for files
	}
	env = append(env, "ANSIBLE_INVENTORY_ENABLED="+reads)
	if config != "" {
		env = append(env, "ANSIBLE_CONFIG="+config)
	}
	if w.PassphraseFile != "" {
		env = append(env, "SSH_ASKPASS="+w.Dir+"/"+askFile, "SSH_ASKPASS_REQUIRE=force",
			"MUSTER_PASSPHRASE_FILE="+w.PassphraseFile)
	}
	return env
}

// check returns an error if something of the host cannot be said to Ansible or OpenSSH.
func (p Play) check(w Place) error {
	var errs []error
	bad := func(what, text string, err error) {
		if err != nil {
			errs = append(errs, errors.New(what+" "+strconv.Quote(text)+": "+err.Error()))
		}
	}
	if p.Host.Profile == fleet.ProfileLegacy {
		errs = append(errs, errors.New("its profile is legacy, and a playbook needs a host that "+
			"OpenSSH reaches with today's algorithms"))
	}
	for _, h := range append([]fleet.Hop{p.Host.Hop()}, p.Host.Jump...) {
		bad("address", h.Address, plain(h.Address))
		bad("user", h.User, plain(h.User))
		bad("key", h.Key, plainPath(h.Key))
		bad("certificate", h.Certificate, plainPath(h.Certificate))
		for _, name := range h.Principals {
			bad("principal", name, plain(name))
		}
		if h.Key == "" && w.Agent == "" {
			errs = append(errs, errors.New("the inventory names no key for "+h.Name+" and there is no "+
				"SSH agent: set key in the inventory, or name the socket of an agent"))
		}
	}
	return errors.Join(errs...)
}

// plain returns an error unless a text is one word for OpenSSH that is no option and no pattern.
func plain(text string) error {
	if strings.HasPrefix(text, "-") || strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7F || strings.ContainsRune("\"'\\$%*?!,#", r)
	}) {
		return errors.New("want letters, digits, '.', ':', '_', '@', and '-' not at the beginning")
	}
	return nil
}

// plainPath returns an error unless OpenSSH takes a path in double quotes as it is.
func plainPath(path string) error {
	if strings.ContainsFunc(path, func(r rune) bool {
		return r < ' ' || r == 0x7F || strings.ContainsRune("\"\\$", r)
	}) {
		return errors.New("a path for OpenSSH has no quotes, backslashes, dollars and control characters")
	}
	return nil
}
