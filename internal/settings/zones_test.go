package settings

import (
	"strings"
	"testing"
)

func TestZonesWithARedisOfTheirOwn(t *testing.T) {
	t.Parallel()
	file := write(t, "redis: {zones: [zrh=rediss://u:p@redis.zrh.example:6380/1, sin=unix:///run/sin.sock]}\n")
	s, err := read(Source{File: file}, here)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Queue().Apart; len(got) != 2 || got["zrh"] != "rediss://u:p@redis.zrh.example:6380/1" ||
		got["sin"] != "unix:///run/sin.sock" {
		t.Errorf("%v", got)
	}
	file = write(t, `redis: {zones: ["redis://u:hunter2==@h:1", "A B=redis://h:1", a=redis://h:1, a=redis://h:2]}`+"\n")
	_, err = read(Source{File: file}, here)
	for _, want := range []string{"text 1: want ZONE=URL", `text 2: name "A B" has`, "zone a is there twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a password is in %v", err)
	}
}
