package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster/fleet/remote"
	"muster/history"
	"muster/internal/sources"
	"muster/jobs"
	"muster/jobs/outliers"
	"muster/jobs/quarantine"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
	"muster/master"
	"muster/server"
	"muster/server/anchor"
	"muster/worker"
	"muster/worker/cache"
	"muster/worker/plays"
)

// Child is the configuration of a worker process. Its master sends it over the socketpair, because
// it contains the password of Redis.
type Child struct {
	Redis  queue.Config  `json:"redis"`
	As     keys.Role     `json:"as"` // whose permissions it has in Redis
	SSH    remote.Config `json:"ssh"`
	Worker worker.Config `json:"worker"`
	Log    Log           `json:"log"`

	// Cache configures the node's cache of the stored contents that it sends.
	Cache cache.Config `json:"cache"`

	// SecretsKey is the file with the keys of secret arguments; empty: there is none.
	SecretsKey string `json:"secrets_key,omitempty"`

	// References is the file that says which references to secrets the node resolves; empty: none.
	// Credentials is the folder with the credentials of the service; empty: it has none.
	References  string `json:"references,omitempty"`
	Credentials string `json:"credentials,omitempty"`

	// TrustDir is the folder that says whom the node trusts; empty: it believes Redis.
	TrustDir string `json:"trust_dir,omitempty"`
	// TimesAge is the longest time since a server said that the timetable is in force; NodeDir is
	// the folder of the node.
	TimesAge time.Duration `json:"times_age"`
	NodeDir  string        `json:"node_dir"`

	// Playbooks is the folder of the playbooks that the node runs; empty: it runs none.
	Playbooks string `json:"playbooks,omitempty"`
}

// PlaysDir is the folder of a node in which its plays have their private folders. It is beside the
// locks of the node, which are in memory on most systems.
func PlaysDir(nodeDir string) string { return filepath.Join(nodeDir, "plays") }

// Plays is the configuration of the playbooks of a child.
func (c Child) Plays() plays.Config {
	return plays.Config{Folder: c.Playbooks, Dir: PlaysDir(c.NodeDir),
		Agent: c.SSH.AgentSocket, PassphraseFile: c.SSH.PassphraseFile, OutputMax: c.Worker.OutputMax}
}

// ParseChild reads what ForChild wrote.
func ParseChild(data []byte) (Child, error) {
	var c Child
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("handed over configuration: %w", err)
	}
	return c, nil
}

// ForChild is the configuration of this node's children, which call Redis as the role of
// their master does: those of `muster up` have the user of its server.
func (s Settings) ForChild(as keys.Role) (json.RawMessage, error) {
	c := Child{Redis: s.Queue(), As: as, SSH: s.Remote(), Worker: s.Worker(), Log: s.Log,
		Cache: cache.Config{Dir: filepath.Join(s.Node.Dir, "blobs"), Max: int64(s.Blobs.Cache)}}
	c.SecretsKey, c.TrustDir = s.Keys.Secrets.Key, s.Keys.Trust.Dir
	c.References, c.Credentials = s.Keys.Secrets.References, s.Keys.Secrets.Credentials
	c.TimesAge, c.NodeDir = s.Keys.Trust.TimesAge, s.Node.Dir
	c.Playbooks = s.Node.Playbooks
	c.SSH.DoorDir = s.Node.Dir
	c.Redis.Pool = 5 // the clerk's call, beside it checkpoints, stops, speeches and a reordering
	return json.Marshal(c)
}

// Queue is the configuration of the queue.
func (s Settings) Queue() queue.Config {
	c := queue.DefaultConfig()
	r := s.Redis
	c.URL, c.Timeout, c.Pool, c.Durable = r.URL, r.Timeout, r.Pool, r.Durable
	c.Unsafe, c.Plain, c.Embedded = r.Unsafe, r.Plain, r.Embedded
	c.Login, c.TLS = queue.Login(r.Login), queue.TLS(r.TLS)
	c.Cluster, c.Apart = r.Cluster.Addresses, r.apart()
	c.Sentinel = queue.Sentinel{Master: r.Sentinel.Master, Addresses: r.Sentinel.Addresses,
		Login: queue.Login(r.Sentinel.Login)}
	return c
}

// Remote is the configuration of the way to hosts.
func (s Settings) Remote() remote.Config {
	c := remote.Default()
	c.TCP, c.Handshake, c.Auth, c.Channel = s.SSH.TCP, s.SSH.Handshake, s.SSH.Auth, s.SSH.Channel
	c.Idle, c.Keepalive, c.AgentSocket = s.SSH.Idle, s.SSH.Keepalive, s.SSH.Agent
	c.JumpIdle, c.PassphraseFile = s.SSH.JumpIdle, s.SSH.PassphraseFile
	c.OutputMax, c.RecordDir = s.Output.Max, s.SSH.RecordDir
	return c
}

// Worker is the configuration of a child.
func (s Settings) Worker() worker.Config {
	c := worker.Default()
	c.Slots, c.OutputMax, c.Call = s.Master.Slots, s.Output.Max, s.Redis.Timeout
	c.Overload = jobs.Overload{After: s.Overload.After, Cooldown: s.Overload.Cooldown,
		FairBy: jobs.FairBy(s.Overload.FairBy)}
	c.Linger = s.Master.Linger
	c.RequireNTP, c.RecordDir = s.Windows.RequireNTP, s.SSH.RecordDir
	return c
}

// MasterConfig is the configuration of a master whose children are the binary
// at path, and which calls Redis as a role.
func (s Settings) MasterConfig(as keys.Role, path, version string) (master.Config, error) {
	c := master.Default()
	c.Node, c.Dir, c.Zones = s.Node.Name, s.Node.Dir, s.Master.zones()
	c.Children, c.Slots = s.Master.Children, s.Master.Slots
	c.Poll, c.Drain = s.Master.Poll, s.Master.Drain
	c.Path, c.Version = path, version
	var err error
	c.Worker, err = s.ForChild(as)
	return c, err
}

// ServerConfig is the configuration of the server.
func (s Settings) ServerConfig(version string) server.Config {
	return server.Config{Listen: strings.Join(s.Server.Listen, ","), SocketGroup: s.Server.SocketGroup,
		TLSCert: s.Server.TLS.Cert, TLSKey: s.Server.TLS.Key, TLSClientCA: s.Server.TLS.ClientCA,
		URL: s.Server.URL, OIDC: s.Server.OIDC.config(),
		NoPages: !s.Server.Pages, Claims: s.Redis.Embedded, Version: version, Name: s.Node.Name,
		FactsStale: s.Facts.Stale, HistoryKeep: s.Past.History.Keep, Overload: s.Worker().Overload,
		Quarantine: quarantine.Policy(s.Server.Quarantine), Traces: s.Past.Traces.Config(),
		Outliers: outliers.Policy(s.Server.Outliers),
		Blobs:    server.Blobs{Max: int64(s.Blobs.Max), Grace: s.Blobs.Grace}}
}

// HistoryConfig is the configuration of history.
func (s Settings) HistoryConfig() history.Config { return history.Config(s.Past.History) }

// validate reports mistakes.
func (a Audit) validate() error {
	err := a.Anchor().Validate()
	if !filepath.IsAbs(a.Dir) {
		err = errors.Join(err, fmt.Errorf("audit.dir = %q: want an absolute path of a folder", a.Dir))
	}
	return err
}

// Anchor is the configuration of the places that get copies of the audit log.
func (a Audit) Anchor() anchor.Config {
	return anchor.Config{Sinks: a.Sinks, WebhookKey: a.WebhookKey, WebhookCA: a.WebhookCA}
}

// LedgerConfig is the configuration of the database that keeps the audit log: that of history, or a
// file of its own where no history is kept.
func (s Settings) LedgerConfig() history.Config {
	c := s.HistoryConfig()
	if c.URL == history.None {
		c.URL = "sqlite://" + filepath.Join(s.Past.Audit.Dir, "audit.db")
	}
	return c
}

// Sources says where the inventory is.
func (s Settings) Sources() sources.Config {
	home, _ := os.UserHomeDir() // a service may have none
	c := sources.Config{List: s.Inventory, Every: s.InventoryEvery, Home: home}
	for _, path := range s.KnownHosts {
		if rest, ok := strings.CutPrefix(path, "~/"); ok && home != "" {
			path = home + "/" + rest
		}
		c.KnownHosts = append(c.KnownHosts, path)
	}
	return c
}

// CheckServer reports every mistake in the files that servers alone read: nodes need not be able to
// read them.
func (s Settings) CheckServer() error {
	_, key := ServerKeys(s.Server.Key)()
	_, policy := Policy(s.Access(), "")()
	return errors.Join(key, policy, s.Server.OIDC.check(), s.Past.Traces.check())
}

// CheckNode reports every mistake in the files that nodes alone read.
func (s Settings) CheckNode() error {
	errs := []error{s.Keys.Trust.validate()}
	if p := s.Node.Playbooks; p != "" && !filepath.IsAbs(p) {
		errs = append(errs, fmt.Errorf("node.playbooks = %q: want an absolute path of a folder", p))
	}
	if read := SourcesOf(s.Keys.Secrets.References); read != nil {
		_, err := read()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Validate reports every mistake of all parts at once.
func (s Settings) Validate() error {
	errs := []error{s.Queue().Validate(), prefixed("ssh.", s.Remote().Validate()),
		prefixed("worker: ", s.Worker().Validate())}
	m, err := s.MasterConfig(keys.RoleNode, "muster", "")
	_, apart := s.Redis.readZones()
	errs = append(errs, err, m.Validate(), s.validateGovernor(), apart)
	if !slices.Contains([]string{"trace", "debug", "info", "warn", "error"}, s.Log.Level) {
		errs = append(errs, fmt.Errorf("log.level = %q: want trace, debug, info, warn or error",
			s.Log.Level))
	}
	if s.Log.Format != "text" && s.Log.Format != "json" {
		errs = append(errs, fmt.Errorf("log.format = %q: want text or json", s.Log.Format))
	}
	errs = append(errs, s.ServerConfig("").Validate(), s.Sources().Validate(),
		s.HistoryConfig().Validate(), s.Past.Audit.validate(), s.Past.checkTraces())
	errs = append(errs, s.Keys.Secrets.validate(), s.Server.Quarantine.validate(),
		prefixed("server.outliers.", outliers.Policy(s.Server.Outliers).Validate()))
	if s.Server.Outliers.Window > 0 && s.Past.History.URL == history.None {
		errs = append(errs, errors.New("server.outliers.window is set, and history.url = none: nodes "+
			"are compared by what history has, so set history.url, or leave the window at 0"))
	}
	if s.Blobs.Cache < 0 {
		errs = append(errs, fmt.Errorf("blobs.cache = %d: want 0 bytes or more", s.Blobs.Cache))
	}
	return errors.Join(errs...)
}

// prefixed puts the section before each line of a package's mistakes.
func prefixed(section string, err error) error {
	if err == nil {
		return nil
	}
	lines := strings.Split(err.Error(), "\n")
	return errors.New(section + strings.Join(lines, "\n"+section))
}

// validate refuses a policy that nobody would miss: it names what it is for, and is off.
func (q Quarantine) validate() error {
	if !q.Unknown && len(q.Runbooks)+len(q.Customers) > 0 {
		return errors.New("server.quarantine has runbooks or customers, and unknown = false: set " +
			"unknown to true, or leave the others out")
	}
	return nil
}
