package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"muster/internal/fit"
	"muster/internal/settings"
)

const containers = "../../etc/container/"

// composition has the parts of a Compose file that the test reads.
type composition struct {
	Services map[string]struct {
		Image, Hostname string
		Command         []string
		Volumes         []string
		Environment     map[string]string
		DependsOn       map[string]any `yaml:"depends_on"`
	}
	Volumes map[string]any
}

func compose(t *testing.T) (c composition) {
	t.Helper()
	text, err := os.ReadFile(containers + "compose.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// All that the Compose file names is there: commands, flags, files, volumes, services. No container runs
// here, so this is all that is known of it.
func TestTheComposeFileNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	c := compose(t)
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			source, _, _ := strings.Cut(v, ":")
			if _, declared := c.Volumes[source]; strings.HasPrefix(source, ".") {
				// People make the folder hosts, as docs/INSTALL.md says.
				if _, err := os.Stat(containers + source); err != nil && source != "./hosts" {
					t.Errorf("%s: %v", name, err)
				}
			} else if !declared {
				t.Errorf("%s: the volume %s is not declared", name, source)
			}
		}
		for other := range s.DependsOn {
			if _, there := c.Services[other]; !there {
				t.Errorf("%s depends on %s, which is no service", name, other)
			}
		}
		if s.Image != "muster:local" {
			continue
		}
		cmd, flags, err := newRoot().Find(s.Command)
		if err == nil {
			err = cmd.ParseFlags(flags)
		}
		if err != nil || cmd.Name() != s.Command[0] || len(cmd.Flags().Args()) > 0 {
			t.Errorf("%s: %q is %v, %v", name, s.Command, cmd.Name(), err)
		}
	}
	if len(c.Services) != 5 || c.Services["master"].Hostname == "" {
		t.Errorf("services: %v", c.Services)
	}
}

// The configuration for containers is read without complaint, and each path in it is in a volume of
// the roles that need it; the key of the servers is in none of a node.
func TestTheConfigurationForContainersFitsTheVolumes(t *testing.T) {
	t.Parallel()
	s, err := settings.Read(settings.Source{File: containers + "muster.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CheckNode(); err != nil && !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
	c := compose(t)
	has := func(service, path string) bool {
		return slices.ContainsFunc(c.Services[service].Volumes, func(v string) bool {
			at := strings.Split(v, ":")[1]
			return path == at || strings.HasPrefix(path, at+"/")
		})
	}
	server := []string{s.Server.Key, s.Keys.Trust.Dir, s.Past.Audit.Dir, "/run/postgresql", "/run/redis/redis.sock",
		s.Hosts.Inventory[0], s.Hosts.KnownHosts[0], "/etc/muster.yaml"}
	for service, paths := range map[string][]string{"server": server, "init": {s.Server.Key, s.Keys.Trust.Dir,
		"/run/redis/redis.sock"}, "master": {s.Keys.Trust.Dir, "/run/redis/redis.sock", s.Hosts.KnownHosts[0]}} {
		for _, path := range paths {
			if !has(service, path) {
				t.Errorf("%s has no volume with %s", service, path)
			}
		}
	}
	if has("master", s.Server.Key) || s.Redis.URL != "unix:///run/redis/redis.sock" ||
		!strings.HasSuffix(s.Past.History.URL, "host=/run/postgresql") {
		t.Errorf("a node has %s, or a socket is in no volume: %s, %s", s.Server.Key, s.Redis.URL, s.Past.History.URL)
	}
}

// The image is built from files that are there, with the Go of go.mod, and has the folders of the
// configuration.
func TestTheContainerfileNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(containers + "Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	wanted := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)[1]
	if !strings.Contains(string(text), "/golang:"+string(wanted)+"-") {
		t.Errorf("the image has not the Go %s of go.mod", wanted)
	}
	for _, line := range regexp.MustCompile(`(?m)^COPY ([^-].*) \S+$`).FindAllStringSubmatch(string(text), -1) {
		for _, name := range strings.Fields(line[1]) {
			if _, err := os.Stat(filepath.Join("../..", name)); err != nil {
				t.Error(err)
			}
		}
	}
	for _, words := range []string{"-X muster/cli.Version=", "./cmd/muster", "/etc/muster/key", "/etc/muster/trust",
		"/run/muster-server", "/var/lib/muster-server", `ENTRYPOINT ["/usr/bin/muster"]`, "USER muster"} {
		if !strings.Contains(string(text), words) {
			t.Errorf("the Containerfile lacks %s", words)
		}
	}
	install, err := os.ReadFile("../../docs/INSTALL.md")
	if err != nil || !regexp.MustCompile(`(?m)^\| .*etc/container.*\| untried`).Match(install) {
		t.Errorf("docs/INSTALL.md does not say that containers are untried: %v", err)
	}
}

// The Redis of the Compose file, with its arguments, is one that a server accepts, and init makes
// its keys in the empty volumes.
func TestTheRedisOfTheComposeFileIsOneForMuster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := strings.NewReplacer("/etc/muster-redis.conf", "../../etc/redis.conf", "/data", dir,
		"/run/redis", dir, "/etc/muster/key", filepath.Join(dir, "key"), "/etc/muster/trust", filepath.Join(dir, "trust"))
	c := compose(t)
	args := strings.Split(at.Replace(strings.Join(c.Services["redis"].Command, "\n")), "\n")
	redis := exec.CommandContext(t.Context(), args[0], args[1:]...)
	said, err := redis.StdoutPipe()
	if err == nil {
		err = redis.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = redis.Process.Kill()
		_ = redis.Wait()
	}()
	lines, log := bufio.NewScanner(said), ""
	for !strings.Contains(log, "ready to accept connections at") {
		if !lines.Scan() {
			t.Fatalf("redis-server ended: %s", log)
		}
		log += lines.Text() + "\n"
	}
	for _, name := range []string{"key", "trust"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	args = append(strings.Split(at.Replace(strings.Join(c.Services["init"].Command, "\n")), "\n"), "-o", "json")
	for _, makes := range []bool{true, false} { // the service runs at each start
		init := exec.CommandContext(t.Context(), filepath.Join(bin(t), "muster"), args...)
		init.Env = append(os.Environ(), "MUSTER_CONFIG="+containers+"muster.yaml",
			"MUSTER_REDIS_URL=unix://"+filepath.Join(dir, "redis.sock"))
		out, err := init.Output()
		var m struct {
			Made  bool
			Redis fit.Redis
		}
		if err != nil || json.Unmarshal(out, &m) != nil || m.Made != makes || !m.Redis.Ready {
			t.Fatalf("init: %v: %s", err, out)
		}
	}
	if policy, err := os.ReadFile(filepath.Join(dir, "trust", settings.TrustPolicy)); err != nil || len(policy) == 0 {
		t.Errorf("the policy: %v", err)
	}
}
