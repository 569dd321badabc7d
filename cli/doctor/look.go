package doctor

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"muster/api"
	"muster/cli"
	"muster/internal/files"
	"muster/internal/local"
	"muster/internal/settings"
	"muster/jobs/queue"
	"muster/jobs/queue/vitals"
)

// pemMax bounds a file of certificates.
const pemMax = 4 << 20 // bytes

// lookAtRedis asks the servers of Redis that the configuration names.
func lookAtRedis(ctx context.Context, s settings.Settings) (list []Finding) {
	cfg := s.Queue()
	where := cfg.Where()
	q, err := queue.OpenLazy(cfg)
	if err != nil {
		return []Finding{{Wrong, "redis", where, err.Error(), "a connection",
			"correct redis.* in muster.yaml"}}
	}
	defer q.Close()
	all, err := vitals.Read(ctx, q)
	for _, v := range all {
		list = append(list, judgeRedis(v)...)
	}
	if err != nil {
		list = append(list, Finding{Wrong, "redis", where, err.Error(), "an answer",
			"start Redis, or correct redis.* in muster.yaml"})
	}
	return list
}

// The permissions that nobody may have on a file. Muster itself refuses keys that a group can read;
// a group may read passwords, and keys of TLS.
const (
	badOfKey    fs.FileMode = 0o077
	badOfSecret fs.FileMode = 0o027
	badOfRules  fs.FileMode = 0o022
)

// guardedFiles returns the files that the configuration names and that others must not read, or not
// write.
func guardedFiles(s settings.Settings) (list []guardedFile) {
	for _, f := range []guardedFile{
		{"redis.password_file", s.Redis.Login.PasswordFile, badOfSecret},
		{"redis.sentinel.password_file", s.Redis.Sentinel.Login.PasswordFile, badOfSecret},
		{"redis.tls.key", s.Redis.TLS.Key, badOfSecret},
		{"server.key", s.Server.Key, badOfKey},
		{"server.tls.key", s.Server.TLS.Key, badOfSecret},
		{"server.oidc.client_secret_file", s.Server.OIDC.Secret, badOfKey},
		{"secrets.key", s.Keys.Secrets.Key, badOfKey},
		{"secrets.references", s.Keys.Secrets.References, badOfRules},
		{"ssh.passphrase_file", s.SSH.PassphraseFile, badOfSecret},
		{"history.password_file", s.Past.History.PasswordFile, badOfSecret},
		{"audit.webhook_key", s.Past.Audit.WebhookKey, badOfSecret},
		{"traces.headers_file", s.Past.Traces.HeadersFile, badOfKey},
		{"traces.tls.key", s.Past.Traces.TLS.Key, badOfSecret},
	} {
		if f.path != "" {
			list = append(list, f)
		}
	}
	if dir := s.Keys.Trust.Dir; dir != "" {
		list = append(list,
			guardedFile{"trust.dir", filepath.Join(dir, settings.TrustPolicy), badOfRules},
			guardedFile{"trust.dir", filepath.Join(dir, settings.TrustSigners), badOfRules},
			guardedFile{"trust.dir", filepath.Join(dir, settings.TrustNodeKey), badOfKey})
	}
	return list
}

// SecretFiles returns the files with secrets that the configuration names.
func SecretFiles(s settings.Settings) (list []string) {
	for _, f := range guardedFiles(s) {
		if f.bad != badOfRules {
			list = append(list, f.path)
		}
	}
	return list
}

// lookAtFiles looks at modes and owners. Only root and the users in may are right owners.
func lookAtFiles(list []guardedFile, may []int) (out []Finding) {
	for _, f := range list {
		info, err := files.Stat(f.path)
		if err != nil {
			out = append(out, missing("file", f.path, f.setting, err))
			continue
		}
		uid := -1
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			uid = int(st.Uid)
		}
		out = append(out, judgeFile(f, info.Mode(), uid, may))
	}
	return out
}

// missing says that a file cannot be looked at: it is not there, or nobody may look here.
func missing(check, path, setting string, err error) Finding {
	f := Finding{Unknown, check, path, err.Error(), setting + ": a file that can be looked at",
		"run muster doctor as root, or as the user muster"}
	if errors.Is(err, fs.ErrNotExist) {
		f.Level, f.Do = Wrong, "make the file, or correct "+setting
	}
	return f
}

// lookAtCertificates reads the certificates that the configuration names.
func lookAtCertificates(s settings.Settings, now time.Time) (out []Finding) {
	for _, f := range [][2]string{{"redis.tls.ca", s.Redis.TLS.CA},
		{"redis.tls.cert", s.Redis.TLS.Cert}, {"server.tls.cert", s.Server.TLS.Cert},
		{"server.tls.client_ca", s.Server.TLS.ClientCA},
		{"audit.webhook_ca", s.Past.Audit.WebhookCA}, {"traces.tls.ca", s.Past.Traces.TLS.CA},
		{"traces.tls.cert", s.Past.Traces.TLS.Cert}} {
		if f[1] != "" {
			out = append(out, lookAtCertificate(f[0], f[1], now)...)
		}
	}
	return out
}

// lookAtCertificate judges each certificate of a file.
func lookAtCertificate(setting, path string, now time.Time) (out []Finding) {
	text, err := files.Read(path, pemMax)
	if err != nil {
		return []Finding{missing("certificate", path, setting, err)}
	}
	for len(text) > 0 {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			out = append(out, Finding{Wrong, "certificate", path, err.Error(), "a certificate",
				"make it anew"})
			continue
		}
		out = append(out, judgeCert(path, c.Subject.String(), c.NotAfter, now))
	}
	if len(out) == 0 {
		return []Finding{{Wrong, "certificate", path, "it has no certificate in PEM",
			setting + ": one or more", "make it anew"}}
	}
	return out
}

// lookAtDisks looks at the folders in which roles write. A folder that is missing has the space of
// the one above it.
func lookAtDisks(s settings.Settings) (out []Finding) {
	folders := []string{s.Node.Dir, s.Past.Audit.Dir}
	if path, ok := strings.CutPrefix(s.Past.History.URL, "sqlite://"); ok {
		folders = append(folders, filepath.Dir(path))
	}
	seen := map[string]bool{}
	for _, path := range folders {
		if path == "" || seen[path] {
			continue
		}
		seen[path] = true
		var st syscall.Statfs_t
		err := syscall.Statfs(above(path), &st)
		if err != nil {
			out = append(out, missing("disk", path, "a folder of muster", err))
			continue
		}
		unit := uint64(max(st.Bsize, 1))
		out = append(out, judgeDisk(path,
			space{st.Bavail * unit, st.Blocks * unit, st.Ffree, st.Files}))
	}
	return out
}

// above returns the path, or the next folder above it that is there.
func above(path string) string {
	for {
		_, err := os.Stat(path)
		up := filepath.Dir(path)
		if !errors.Is(err, fs.ErrNotExist) || up == path {
			return path
		}
		path = up
	}
}

// lookAtServer asks the server about things that only it sees: its health, its history, its nodes.
func lookAtServer(ctx context.Context, s *cli.Session) (out []Finding) {
	var h api.Health
	began := time.Now()
	said, err := exchange(ctx, s, &h)
	if err != nil {
		return []Finding{{Wrong, "server", s.Place, err.Error(), "an answer",
			"start muster server, or name it with --server"}}
	}
	if h.Status == "ok" {
		out = append(out, Finding{Well, "server", s.Place, "ok, version " + h.Version, "", ""})
	} else {
		out = append(out, Finding{Wrong, "server", s.Place, h.Status, "ok",
			"look the message up in docs/OPERATING.md"})
	}
	if h.Version == "" {
		return append(out, Finding{Unknown, "server", s.Place, "it does not tell you its state",
			"a caller who may see the whole house", "call it as somebody who may"})
	}
	if h.Version != cli.Version {
		out = append(out, Finding{Note, "version", "this command", cli.Version,
			"that of the server, " + h.Version, "use the same version on both"})
	}
	if at, err := http.ParseTime(said); err == nil {
		// The header has whole seconds, cut off, and was written while we waited.
		unsure := time.Since(began)/2 + time.Second/2
		middle := began.Add(time.Since(began) / 2)
		out = append(out, judgeClock("server", "that of this machine",
			at.Add(time.Second/2).Sub(middle), unsure))
	}
	return append(append(out, lookAtHistory(ctx, s)...), lookAtNodes(ctx, s, h.Version)...)
}

// Health returns what the server says of itself, also one that cannot work.
func Health(ctx context.Context, s *cli.Session) (h api.Health, err error) {
	_, err = exchange(ctx, s, &h)
	return h, err
}

// exchange asks for health, which a server that cannot work answers with 503. It returns the clock
// of the server, as its answer has it.
func exchange(ctx context.Context, s *cli.Session, h *api.Health) (date string, err error) {
	ctx, cancel := context.WithTimeout(ctx, cli.CallTimeout)
	defer cancel()
	r, err := s.Exchange(ctx, cli.Call{Method: http.MethodGet, Path: "/v1/health",
		Bound: cli.CallTimeout})
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK &&
		(r.StatusCode != http.StatusServiceUnavailable || cli.MediaType(r) != "application/json") {
		return "", s.Refused(r)
	}
	text, err := s.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(text, h); err != nil || h.Status == "" {
		return "", s.Nonsense("its answer has no status")
	}
	return r.Header.Get("Date"), nil
}

// lookAtHistory asks whether the server can use its tables in SQL.
func lookAtHistory(ctx context.Context, s *cli.Session) []Finding {
	var st api.HistoryState
	if err := s.Get(ctx, "/v1/history/state", nil, &st); err != nil {
		if strings.Contains(err.Error(), "keeps no history") {
			return []Finding{{Note, "sql", "history", "none is kept", "a database",
				"set history.url, or live without reports"}}
		}
		return []Finding{{Wrong, "sql", "history", err.Error(), "tables of this version",
			"start the database, or run the version of muster that the message names"}}
	}
	out := []Finding{{Well, "sql", st.Where, "its tables can be used", "", ""}}
	if path, ok := strings.CutPrefix(st.Where, "sqlite "); ok {
		if info, err := files.Stat(path); err == nil {
			out[0].Found += fmt.Sprintf(", %d MiB", info.Size()>>20)
		}
	}
	if n := len(st.Gaps); n > 0 {
		out = append(out, Finding{Warning, "sql", st.Where, cli.Count(n, "gap") + " in history",
			"none", "muster history gaps says where; what is lost does not come back"})
	}
	return out
}

// lookAtNodes judges the reports of the nodes.
func lookAtNodes(ctx context.Context, s *cli.Session, version string) (out []Finding) {
	var l api.NodeList
	if err := s.Get(ctx, "/v1/nodes", nil, &l); err != nil {
		return []Finding{{Unknown, "node", "all", err.Error(), "their list",
			"read the message; who may see the whole house gets the list"}}
	}
	if len(l.Nodes) == 0 {
		return []Finding{{Warning, "node", "all", "there is none, so no job runs", "one or more",
			"start muster master"}}
	}
	for _, n := range l.Nodes {
		out = append(out, judgeNode(n, version)...)
	}
	return out
}

// owners returns the users that may own files with secrets: root, the own one, and the one of the
// units, where there is one.
func owners() []int {
	list := []int{0, local.This().UID}
	if u, err := user.Lookup("muster"); err == nil {
		if uid, err := strconv.Atoi(u.Uid); err == nil {
			list = append(list, uid)
		}
	}
	return list
}
