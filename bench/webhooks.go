package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"muster/testkit/queuetest"
)

const (
	webhookSource   = "rules"
	webhookSecret   = "of-the-bench-5f1d3c9b7a864e20b1c2"
	webhooksAMinute = 10000
	webhookMost     = 50 // ms to the answer, for 99 of 100
)

// webhooks sends webhooks to a server while jobs get through the queue beside it.
func webhooks(ctx context.Context, b *bench) (rows []row, err error) {
	hosts, err := b.newHosts(1) // for the inventory of the server
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, hosts.stop()) }()
	n := b.size(60000)
	var answers []float64 // ms
	beside := func(ctx context.Context, h *house, drain func() error) error {
		more, err := h.sendDuring(ctx, drain)
		answers = append(answers, more...)
		return err
	}
	got, err := b.race(ctx, b.rounds, []contender{
		rate("drain beside an idle server", n, b.servedHeat(n, nil)),
		rate("drain beside one that takes webhooks", n, b.servedHeat(n, beside)),
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(answers)
	last := answers[len(answers)*99/100:]
	quiet := newRow("drain beside a server without webhooks", "jobs/s", got[0])
	name := fmt.Sprintf("%s webhooks a minute: ", thousands(webhooksAMinute))
	return []row{
		newRow("drain beside them", "jobs/s", got[1]).to("without", quiet).ratioAtLeast(0.9), quiet,
		newRow(name+"to the answer, median", "ms", answers),
		newRow(name+"99 of 100 are faster", "ms", last[:1]).atMost(webhookMost),
	}, nil
}

// servedHeat is crewHeat beside a server; during, if there is one, works while the crew drains.
func (b *bench) servedHeat(n int, during func(context.Context, *house, func() error) error) heat {
	return func(ctx context.Context, measure func(func() error) error) (err error) {
		h, err := b.newHouse(ctx, nodeSize{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, h.close()) }()
		q, err := b.open(ctx)
		if err != nil {
			return err
		}
		defer q.Close()
		c, err := b.crewFor(ctx, q, n)
		if err != nil {
			return err
		}
		defer c.close()
		return measure(func() error {
			drain := func() error { return c.drain(ctx, n) }
			if during == nil {
				return drain()
			}
			return during(ctx, h, drain)
		})
	}
}

// crewFor puts n jobs into a queue, and makes a crew that is about to take them.
func (b *bench) crewFor(ctx context.Context, q *queuetest.Queue, n int) (*crew, error) {
	names := hostNames(n)
	if err := publish(ctx, q, names); err != nil {
		return nil, err
	}
	if _, err := put(ctx, q, "true", names); err != nil {
		return nil, err
	}
	return b.newCrew(ctx, 16, 1)
}

// sendDuring sends webhooks at their rate until the work is done, and returns how long each waited
// for its answer, in ms.
func (h *house) sendDuring(ctx context.Context, work func() error) (answers []float64, err error) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	client, done := h.client(), make(chan error, 1)
	go func() { done <- work() }()
	tick := time.NewTicker(time.Minute / webhooksAMinute)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case worked := <-done:
			wait.Wait()
			return answers, errors.Join(err, worked)
		case <-tick.C:
		}
		wait.Go(func() {
			took, failed := sendWebhook(ctx, client, n)
			mu.Lock()
			defer mu.Unlock()
			answers, err = append(answers, millis(took)), errors.Join(err, failed)
		})
	}
}

// sendWebhook sends a push, as GitHub does, and returns how long the answer took.
func sendWebhook(ctx context.Context, c *http.Client, n int) (time.Duration, error) {
	body := fmt.Appendf(nil, `{"ref":"refs/heads/main","after":"%040d","repository":{"full_name":`+
		`"acme/rules"},"commits":[{"id":"%040d","message":"ticket %d"}]}`, n, n, n)
	mac := hmac.New(sha256.New, []byte(webhookSecret))
	mac.Write(body)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"http://server/v1/ingress/"+webhookSource, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-GitHub-Event", "push")
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	began := time.Now()
	res, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusAccepted {
		err = errors.Join(err, fmt.Errorf("a webhook: %s: %s", res.Status, text))
	}
	return time.Since(began), err
}
