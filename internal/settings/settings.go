package settings

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/viper"

	"muster/fleet/remote"
	"muster/history"
	"muster/internal/files"
	"muster/internal/local"
	"muster/internal/proc"
	"muster/jobs"
	"muster/jobs/outliers"
	"muster/jobs/queue"
	"muster/master"
	"muster/server"
	"muster/worker"
	"muster/worker/warden"
)

// Settings is the whole configuration. The names in the file are those of the
// tags; etc/muster.yaml shows each with its default.
type Settings struct {
	Redis    Redis    `mapstructure:"redis"`
	Server   Server   `mapstructure:"server"`
	Master   Master   `mapstructure:"master"`
	Node     Node     `mapstructure:"node"`
	Overload Overload `mapstructure:"overload"`
	Windows  Windows  `mapstructure:"windows"`
	SSH      SSH      `mapstructure:"ssh"`
	Output   Output   `mapstructure:"output"`
	Blobs    Blobs    `mapstructure:"blobs"`
	Facts    Facts    `mapstructure:"facts"`
	Keys     Keyrings `mapstructure:",squash"`
	Log      Log      `mapstructure:"log"`
	Runbooks []string `mapstructure:"runbooks"` // files or folders of runbooks
	Hosts    `mapstructure:",squash"`
	Past     Past `mapstructure:",squash"`
}

// Keyrings name the files with keys that nodes need.
type Keyrings struct {
	Secrets Secrets `mapstructure:"secrets"`
	Trust   Trust   `mapstructure:"trust"`
}

// Hosts says where the hosts are listed.
type Hosts struct {
	Inventory []string `mapstructure:"inventory"` // files, folders, programs, URLs

	// InventoryEvery is the time between two calls of programs and URLs.
	InventoryEvery time.Duration `mapstructure:"inventory_every"`
	KnownHosts     []string      `mapstructure:"known_hosts"` // for hosts that name no key and no file
}

// Redis says which Redis keeps the queue.
type Redis struct {
	URL      string        `mapstructure:"url"`
	Login    Login         `mapstructure:",squash"`
	Sentinel Sentinel      `mapstructure:"sentinel"`
	Cluster  Cluster       `mapstructure:"cluster"`
	Zones    []string      `mapstructure:"zones"` // zone=URL of those that have one of their own
	TLS      RedisTLS      `mapstructure:"tls"`
	Durable  int           `mapstructure:"durable"` // replicas that must have it
	Timeout  time.Duration `mapstructure:"timeout"` // of one call
	Pool     int           `mapstructure:"pool"`    // connections of a server or master
	Unsafe   bool          `mapstructure:"unsafe"`  // accept one that may forget
	Plain    bool          `mapstructure:"plain"`   // send a password unencrypted

	// Embedded says that it is the one of `muster demo`, which forgets all at its end.
	Embedded bool `mapstructure:"embedded"`
}

// Login is a user of Redis or of its Sentinels.
type Login struct {
	Username     string `mapstructure:"username"`
	Password     string `mapstructure:"password"`
	PasswordFile string `mapstructure:"password_file"`
}

// Sentinel says which Sentinels know the server.
type Sentinel struct {
	Master    string   `mapstructure:"master"`
	Addresses []string `mapstructure:"addresses"`
	Login     Login    `mapstructure:",squash"`
}

// Cluster says where some nodes of a cluster are.
type Cluster struct {
	Addresses []string `mapstructure:"addresses"`
}

// RedisTLS says how the way to Redis is encrypted.
type RedisTLS struct {
	On         bool   `mapstructure:"on"`
	CA         string `mapstructure:"ca"`
	Cert       string `mapstructure:"cert"`
	Key        string `mapstructure:"key"`
	ServerName string `mapstructure:"server_name"`
}

// Server says where the API listens.
type Server struct {
	Listen      []string `mapstructure:"listen"`       // unix:/path, host:port
	SocketGroup string   `mapstructure:"socket_group"` // who may use the socket beside our user
	URL         string   `mapstructure:"url"`          // for browsers; empty: that of a port
	Pages       bool     `mapstructure:"pages"`        // browsers get them
	Key         string   `mapstructure:"key"`          // file; empty: the default one, if it is there
	Access      string   `mapstructure:"access"`       // file; empty: the default one, if it is there
	Notify      string   `mapstructure:"notify"`       // file; empty: the default one, if it is there
	Triggers    string   `mapstructure:"triggers"`     // file; empty: the default one, if it is there
	Events      string   `mapstructure:"events"`       // file; empty: the default one, if it is there
	TLS         TLS      `mapstructure:"tls"`
	OIDC        OIDC     `mapstructure:"oidc"`

	Quarantine   Quarantine `mapstructure:"quarantine"`
	Outliers     Outliers   `mapstructure:"outliers"`
	Repositories string     `mapstructure:"repositories"` // file; empty: the default one

	Usual Usual `mapstructure:"-"`
}

// Quarantine says after which jobs a host takes no job but checks.
type Quarantine struct {
	Unknown   bool     `mapstructure:"unknown"`   // those that end unknown
	Runbooks  []string `mapstructure:"runbooks"`  // of these; empty: of all
	Customers []string `mapstructure:"customers"` // on hosts of these; empty: of all
}

// Outliers says when a node is set aside whose jobs fail much more often than those of others.
type Outliers struct {
	Window time.Duration `mapstructure:"window"` // jobs that ended in it count; 0: off
	Times  int           `mapstructure:"times"`  // so many times as often as on other nodes
}

// Usual says which files have their default place, and need not be there.
type Usual struct{ Access, Notify, Triggers, Events, Repositories bool }

// TLS names the files of a certificate and its key, in PEM, and of the authorities of callers.
type TLS struct {
	Cert     string `mapstructure:"cert"`
	Key      string `mapstructure:"key"`
	ClientCA string `mapstructure:"client_ca"`
}

// Master says how much work a node does.
type Master struct {
	Children int           `mapstructure:"children"` // worker processes at most
	Slots    int           `mapstructure:"slots"`    // jobs a child works on at a time
	Zones    []string      `mapstructure:"zones"`    // whose queues the node works on
	Drain    time.Duration `mapstructure:"drain"`    // after TERM, for the jobs in hand
	Poll     time.Duration `mapstructure:"poll"`     // at most between two looks at the queue
	Linger   time.Duration `mapstructure:"linger"`   // of a child without jobs
	Unzoned  bool          `mapstructure:"allow_unzoned"`
	Standby  []string      `mapstructure:"standby"` // ZONE=TIME
	Governor Governor      `mapstructure:"governor"`
}

// Node says who this machine is.
type Node struct {
	Name      string `mapstructure:"name"`
	Dir       string `mapstructure:"dir"`
	Playbooks string `mapstructure:"playbooks"` // a folder; empty: the node runs no playbooks
}

// Overload says what is done about a queue whose jobs come late.
type Overload struct {
	After    time.Duration `mapstructure:"after"`    // a job that starts so late shows it
	Cooldown time.Duration `mapstructure:"cooldown"` // between two reorderings, at least
	FairBy   string        `mapstructure:"fair_by"`  // task, or operator,task
}

// Windows says what a node must be like to begin work that needs a window.
type Windows struct {
	RequireNTP bool `mapstructure:"require_ntp"` // the kernel says that its clock is kept right
}

// SSH holds the deadlines of the way to a host.
type SSH struct {
	TCP            time.Duration `mapstructure:"tcp"`
	Handshake      time.Duration `mapstructure:"handshake"`
	Auth           time.Duration `mapstructure:"auth"`
	Channel        time.Duration `mapstructure:"channel"`
	Idle           time.Duration `mapstructure:"idle"`
	Keepalive      time.Duration `mapstructure:"keepalive"`
	JumpIdle       time.Duration `mapstructure:"jump_idle"`
	PassphraseFile string        `mapstructure:"passphrase_file"` // of private keys that have a passphrase
	Agent          string        `mapstructure:"agent"`           // socket of an SSH agent; empty: none
	RecordDir      string        `mapstructure:"record_dir"`      // on hosts
}

// Output bounds what is kept of what hosts say.
type Output struct {
	Max int `mapstructure:"max"` // bytes of one attempt
}

// Blobs bounds the contents that are stored for uploads.
type Blobs struct {
	Max   int           `mapstructure:"max"`   // bytes of all of them
	Grace time.Duration `mapstructure:"grace"` // kept so long after the last use
	Cache int           `mapstructure:"cache"` // bytes of those that a node keeps
}

// Facts configures the facts that hosts report about themselves.
type Facts struct {
	Stale time.Duration `mapstructure:"stale"` // shown as such after so long
}

// Past says where that is kept which has happened.
type Past struct {
	History History `mapstructure:"history"`
	Audit   Audit   `mapstructure:"audit"`
	Traces  Traces  `mapstructure:"traces"`
}

// Audit says how the audit log is kept.
type Audit struct {
	Dir        string   `mapstructure:"dir"`         // of what SQL cannot take; empty: beside history
	Sinks      []string `mapstructure:"sinks"`       // places that get copies
	WebhookKey string   `mapstructure:"webhook_key"` // file
	WebhookCA  string   `mapstructure:"webhook_ca"`  // file
}

// History says where what has ended is kept.
type History struct {
	URL          string        `mapstructure:"url"` // empty: a file
	PasswordFile string        `mapstructure:"password_file"`
	Keep         time.Duration `mapstructure:"keep"`
	OutputMax    int           `mapstructure:"output_max"` // bytes of a job
}

// Log says how much is logged.
type Log struct {
	Level  string `mapstructure:"level"`  // trace, debug, info, warn, error
	Format string `mapstructure:"format"` // text or json

	// Traces: lines about a job have the id of its trace. Node, the name of this node, is in each
	// line of a log in JSON.
	Traces bool   `mapstructure:"-"`
	Node   string `mapstructure:"-"`
}

// Source names the origin of settings.
type Source struct {
	File  string         // path of the file; empty: none
	Env   []string       // as of os.Environ
	Flags map[string]any // key to value, of the flags that were given
}

// envPrefix begins the variables that set a key: MUSTER_MASTER_CHILDREN.
const envPrefix = "MUSTER_"

// ownEnv are variables of the prefix that are no keys: they are for the CLI.
var ownEnv = []string{"MUSTER_URL", "MUSTER_TOKEN", "MUSTER_CONFIG", "MUSTER_AS",
	"MUSTER_CLIENT_CERT", "MUSTER_CLIENT_KEY", "MUSTER_CA", "MUSTER_SIGN_KEY", proc.KeptEnv}

// defaults is the configuration that is used when nothing else is said. The
// type of a value is that of its key.
func defaults(m local.Machine) map[string]any {
	q, r, w := queue.DefaultConfig(), remote.Default(), master.Default()
	o := jobs.DefaultOverload()
	all := map[string]any{
		"redis.url":                    q.URL,
		"redis.username":               "",
		"redis.password":               "",
		"redis.password_file":          "",
		"redis.sentinel.master":        "",
		"redis.sentinel.addresses":     []string{},
		"redis.sentinel.username":      "",
		"redis.sentinel.password":      "",
		"redis.sentinel.password_file": "",
		"redis.cluster.addresses":      []string{},
		"redis.zones":                  []string{},
		"redis.tls.on":                 false,
		"redis.tls.ca":                 "",
		"redis.tls.cert":               "",
		"redis.tls.key":                "",
		"redis.tls.server_name":        "",
		"redis.durable":                q.Durable,
		"redis.timeout":                q.Timeout,
		"redis.pool":                   q.Pool,
		"redis.unsafe":                 false,
		"redis.plain":                  false,
		"redis.embedded":               false,
		"master.children":              8,
		"master.slots":                 8,
		"master.zones":                 w.Zones,
		"master.drain":                 w.Drain,
		"master.poll":                  w.Poll,
		"master.linger":                3 * time.Second,
		"master.allow_unzoned":         false,
		"master.standby":               []string{},
		"node.name":                    m.Host,
		"node.dir":                     m.NodeDir(),
		"node.playbooks":               "",
		"overload.after":               o.After,
		"overload.cooldown":            o.Cooldown,
		"overload.fair_by":             string(o.FairBy),
		"windows.require_ntp":          false,
		"ssh.tcp":                      r.TCP,
		"ssh.handshake":                r.Handshake,
		"ssh.auth":                     r.Auth,
		"ssh.channel":                  r.Channel,
		"ssh.idle":                     r.Idle,
		"ssh.keepalive":                r.Keepalive,
		"ssh.jump_idle":                r.JumpIdle,
		"ssh.agent":                    m.Agent,
		"ssh.passphrase_file":          "",
		"ssh.record_dir":               r.RecordDir,
		"output.max":                   worker.Default().OutputMax,
		"blobs.max":                    int(server.DefaultBlobs().Max),
		"blobs.grace":                  server.DefaultBlobs().Grace,
		"blobs.cache":                  cacheDefault,
		"facts.stale":                  server.DefaultFactsStale,
		"log.level":                    "info",
		"log.format":                   "text",
		"inventory":                    []string{},
		"inventory_every":              30 * time.Second,
		"known_hosts":                  m.KnownHosts(),
		"runbooks":                     []string{},
	}
	maps.Copy(all, serverDefaults(m))
	maps.Copy(all, pastDefaults())
	maps.Copy(all, governorDefaults())
	maps.Copy(all, keyDefaults())
	maps.Copy(all, traceDefaults())
	return all
}

// serverDefaults returns the defaults of Server.
func serverDefaults(m local.Machine) map[string]any {
	return map[string]any{
		"server.listen":                  []string{"unix:" + m.Sockets()[0]},
		"server.socket_group":            "",
		"server.url":                     "",
		"server.pages":                   true,
		"server.key":                     "",
		"server.access":                  "",
		"server.notify":                  "",
		"server.triggers":                "",
		"server.events":                  "",
		"server.quarantine.unknown":      false,
		"server.quarantine.runbooks":     []string{},
		"server.quarantine.customers":    []string{},
		"server.outliers.window":         time.Duration(0),
		"server.outliers.times":          outliers.DefaultTimes,
		"server.repositories":            "",
		"server.tls.cert":                "",
		"server.tls.key":                 "",
		"server.tls.client_ca":           "",
		"server.oidc.issuer":             "",
		"server.oidc.client_id":          "",
		"server.oidc.client_secret_file": "",
		"server.oidc.groups_claim":       "groups",
		"server.oidc.groups":             []string{},
		"server.oidc.device":             false,
	}
}

// keyDefaults returns the defaults of Keyrings.
func keyDefaults() map[string]any {
	return map[string]any{"secrets.key": "", "secrets.references": "", "trust.dir": "",
		"trust.times_age": warden.DefaultAge}
}

// pastDefaults returns the defaults of Past.
func pastDefaults() map[string]any {
	return map[string]any{
		"history.url":           "",
		"history.password_file": "",
		"history.keep":          history.DefaultConfig().Keep,
		"history.output_max":    history.DefaultConfig().OutputMax,
		"audit.dir":             "",
		"audit.sinks":           []string{},
		"audit.webhook_key":     "",
		"audit.webhook_ca":      "",
	}
}

// configMax bounds a configuration.
const configMax = 1 << 20 // bytes

// cacheDefault is the default size of a node's cache of stored contents, in bytes.
const cacheDefault = 1 << 30

// Read reads the settings of this process. Every mistake is reported at once.
func Read(s Source) (Settings, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	m := local.This()
	m.Host = host
	return read(s, m)
}

func read(s Source, m local.Machine) (Settings, error) {
	v, known := viper.New(), defaults(m)
	for key, value := range known {
		v.SetDefault(key, value)
	}
	var errs []error
	if s.File != "" {
		data, err := files.Read(s.File, configMax)
		if err != nil {
			return Settings{}, fmt.Errorf("configuration: %w", err)
		}
		file, mistakes := parseFile(s.File, data, known)
		errs = append(errs, mistakes...)
		if err := v.MergeConfigMap(file); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.File, err))
		}
	}
	env, mistakes := parseEnv(s.Env, known)
	errs = append(errs, mistakes...)
	for key, value := range env {
		v.Set(key, value)
	}
	for key, value := range s.Flags {
		v.Set(key, value)
	}
	if err := errors.Join(errs...); err != nil {
		return Settings{}, err
	}
	var out Settings
	if err := v.UnmarshalExact(&out); err != nil {
		return Settings{}, fmt.Errorf("configuration: %w", err)
	}
	if out.Past.History.URL == "" {
		out.Past.History.URL = "sqlite://" + m.HistoryFile(out.Node.Dir)
	}
	if out.Server.Key == "" {
		out.Server.Key = present(m.ServerKey())
	}
	if out.Keys.Trust.Dir == "" {
		out.Keys.Trust.Dir = usualTrust(m)
	}
	if out.Keys.Secrets.References == "" {
		out.Keys.Secrets.References = present(m.References())
	}
	out.Keys.Secrets.Credentials = m.Credentials
	if out.Server.Access == "" {
		out.Server.Access, out.Server.Usual.Access = m.AccessFile(), true
	}
	if out.Server.Notify == "" {
		out.Server.Notify, out.Server.Usual.Notify = m.NotifyFile(), true
	}
	if out.Server.Triggers == "" {
		out.Server.Triggers, out.Server.Usual.Triggers = m.TriggersFile(), true
	}
	if out.Server.Events == "" {
		out.Server.Events, out.Server.Usual.Events = m.EventsFile(), true
	}
	if out.Server.Repositories == "" {
		out.Server.Repositories, out.Server.Usual.Repositories = m.RepositoriesFile(), true
	}
	if out.Past.Audit.Dir == "" {
		out.Past.Audit.Dir = m.AuditDir(out.Node.Dir)
	}
	out.Log.Traces = out.Log.Format == "json" || out.Past.Traces.Endpoint != ""
	out.Log.Node = out.Node.Name
	return out, out.Validate()
}

// Keys lists the keys, sorted.
func Keys() []string { return slices.Sorted(maps.Keys(defaults(local.Machine{}))) }

// EnvName is the variable that sets a key.
func EnvName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func parseEnv(env []string, known map[string]any) (map[string]any, []error) {
	names := map[string]string{}
	for key := range known {
		names[EnvName(key)] = key
	}
	out := map[string]any{}
	var errs []error
	for _, pair := range env {
		name, text, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(ownEnv, name) {
			continue
		}
		key, ok := names[name]
		if !ok {
			errs = append(errs, fmt.Errorf("environment: %s sets no key%s", name,
				suggest(name, slices.Collect(maps.Keys(names)))))
			continue
		}
		value, want := convert(text, known[key])
		if want != "" {
			errs = append(errs, fmt.Errorf("environment: %s=%q: want %s", name, text, want))
			continue
		}
		out[key] = value
	}
	return out, errs
}
