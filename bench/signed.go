package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"muster/fleet"
	"muster/internal/serverkey"
	"muster/jobs/queue/codec"
	"muster/testkit/queuetest"
	"muster/trust"
)

// signedHosts returns hosts with these names, as an inventory has them.
func signedHosts(names []string) []fleet.Host {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJS7W7ZEI+pjbIecEo74B8QomZ5m6wxYwzD9n4CUVSbt"
	hosts := make([]fleet.Host, len(names))
	for i, name := range names {
		hosts[i] = fleet.Host{Name: name, Address: "192.0.2.1", Port: 22, User: "root", Zone: zone,
			Fence: fleet.FenceAuto, Customer: "acme", Labels: map[string]string{"model": "x100"},
			HostKeys: []string{key}}
	}
	return hosts
}

// putSigned is put for a task with the order that a server signs for it.
func putSigned(ctx context.Context, q *queuetest.Queue, hosts []fleet.Host,
	recordOf trust.RecordFunc) error {
	k, err := serverkey.Parse([]byte(serverkey.File("bench", [serverkey.Size]byte{1})))
	if err != nil {
		return err
	}
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = h.Name
	}
	t, err := newTask("true", len(names))
	if err != nil {
		return err
	}
	spec, err := json.Marshal(t.Spec)
	if err != nil {
		return err
	}
	now := time.Now()
	order, lines, err := trust.New(trust.Order{Installation: k.Installation(), Task: t.ID,
		NotBefore: now, NotAfter: now.Add(time.Hour), Spec: spec}, hosts, recordOf)
	if err != nil {
		return err
	}
	signature, err := trust.SignAs(k, trust.NamespaceOrder, order)
	if err != nil {
		return err
	}
	list, err := codec.Signatures([]string{signature})
	if err != nil {
		return err
	}
	pairs := []string{codec.FieldOrder, string(order), codec.FieldSignatures, list}
	for i, text := range lines[zone] {
		pairs = append(pairs, fmt.Sprint(codec.FieldShare, i), text)
	}
	t.Beside = map[string][]string{zone: pairs}
	return q.Submit(ctx, t, map[string][]string{zone: names}, nil)
}
