package cli

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"muster/api"
	"muster/jobs"
)

// Groups lists the redundancy groups.
func (c *Client) Groups(ctx context.Context) ([]jobs.Group, error) {
	var l api.GroupList
	err := c.Get(ctx, "/v1/groups", nil, &l)
	return Filled(l.Groups), err
}

// SelectorHelp explains selectors in the help of commands.
const SelectorHelp = `A selector is labels (role=fw,customer in (acme,example),!drained), names and
ranges (fw[001-020],vpn*), or both (fw*&{customer=acme}); , adds, ! takes away,
& keeps what is in both, ^ what is in one only. @FILE stands for the hosts in a
file, one name or selector a line; task:ID/failed for those on which an earlier
task failed, task:last/failed for those of your last one; group.web for the group
web of an Ansible inventory.`

// Advice for an empty selector, which is an error and never means all hosts: a variable of a script
// may not be set.
const (
	OrLeaveOut = "leave it out to see all hosts"
	OrSayAll   = "name the hosts, such as fw001 or role=fw, or say all"
)

// SelectorArg returns the selector of a command, or "" if there is none. instead says what to do
// about a selector that is present and empty.
func (s *Session) SelectorArg(ctx context.Context, args []string, instead string) (string,
	error) {
	if len(args) == 0 {
		return "", nil
	}
	if strings.TrimSpace(args[0]) == "" {
		return "", errors.New("the selector is empty: " + instead)
	}
	return WithFiles(args[0], s.Files.Reader(ctx))
}

// SayLeftOut prints which hosts a selector meant and did not get.
func (s *Screen) SayLeftOut(o api.LeftOut) {
	if o.Drained != "" {
		s.Say("drained, left out: %s", Cell(o.Drained))
	}
	if o.Gone != "" {
		s.Say("no longer in the inventory, left out: %s", Cell(o.Gone))
	}
	if o.Closed != "" {
		s.Say("no approved window, left out: %s", Cell(o.Closed))
	}
}

const (
	// hostPage is the number of hosts in one request.
	hostPage = 2000
	// URLMax bounds a selector in a URL; a longer one goes into a body.
	URLMax = 2000 // bytes
)

// Hosts returns the hosts that a selector picks, or all, page by page.
func (c *Client) Hosts(ctx context.Context, q api.HostQuery) (api.HostList, error) {
	var all api.HostList
	q.Limit, q.Fold = hostPage, true
	for {
		var page api.HostList
		if err := c.hostsPage(ctx, q, &page); err != nil {
			return all, err
		}
		if q.Cursor == "" {
			all = page
		} else {
			all.Hosts = append(all.Hosts, page.Hosts...)
			maps.Copy(all.Drained, page.Drained)
			maps.Copy(all.Unfenced, page.Unfenced)
		}
		if page.Next == "" {
			return all, nil
		}
		if len(page.Hosts) == 0 || page.Next == q.Cursor {
			return all, c.Nonsense("its list of hosts has no end")
		}
		q.Cursor = page.Next
		if all.Drained == nil {
			all.Drained = map[string]jobs.Drain{}
		}
		if all.Unfenced == nil {
			all.Unfenced = map[string]string{}
		}
	}
}

func (c *Client) hostsPage(ctx context.Context, q api.HostQuery, page *api.HostList) error {
	if len(q.On) > URLMax {
		return c.Do(ctx, Call{Method: http.MethodPost, Path: "/v1/hosts/query", Body: q,
			Bound: CallTimeout}, page)
	}
	v := url.Values{"limit": {strconv.Itoa(q.Limit)}, "fold": {"true"}}
	if q.On != "" {
		v.Set("on", q.On)
	}
	if q.Cursor != "" {
		v.Set("cursor", q.Cursor)
	}
	if q.Drained {
		v.Set("drained", "true")
	}
	return c.Get(ctx, "/v1/hosts", v, page)
}

// Zones returns the zones with their queues.
func (c *Client) Zones(ctx context.Context) ([]api.Zone, error) {
	var q api.QueueInfo
	err := c.Get(ctx, "/v1/queue", nil, &q)
	for i := range q.Zones {
		q.Zones[i].Shares = Filled(q.Zones[i].Shares)
		q.Zones[i].Deferred.Appointments = Filled(q.Zones[i].Deferred.Appointments)
	}
	return Filled(q.Zones), err
}

// Runbooks returns the runbooks.
func (c *Client) Runbooks(ctx context.Context) ([]api.Runbook, error) {
	var l api.RunbookList
	err := c.Get(ctx, "/v1/runbooks", nil, &l)
	for i := range l.Runbooks {
		l.Runbooks[i].Arguments = Filled(l.Runbooks[i].Arguments)
	}
	return Filled(l.Runbooks), err
}

// Tasks returns the newest tasks.
func (c *Client) Tasks(ctx context.Context, limit int) ([]jobs.TaskInfo, error) {
	var l api.TaskList
	err := c.Get(ctx, "/v1/tasks", url.Values{"limit": {strconv.Itoa(limit)}}, &l)
	return Filled(l.Tasks), err
}
