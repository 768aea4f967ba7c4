package main

import (
	"context"
	"math/rand/v2"
	"time"
)

// fault is a kind of fault.
type fault struct {
	name   string
	weight int
	// inject injects the fault, waits until it is over, and returns a description for the report.
	inject func(ctx context.Context, c *cluster, random *rand.Rand) (what string, err error)
}

var faults = []fault{
	{"kill", 18, kill},
	{"API server", 2, func(ctx context.Context, c *cluster, _ *rand.Rand) (string, error) {
		return "kube-apiserver killed and started again", c.cp.RestartAPIServer(ctx)
	}},
	{"etcd", 1, func(ctx context.Context, c *cluster, _ *rand.Rand) (string, error) {
		return "etcd killed and started again", c.cp.RestartEtcd(ctx)
	}},
	{"reset", 3, func(_ context.Context, c *cluster, _ *rand.Rand) (string, error) {
		c.proxy.reset()
		return "all connections of the operators reset", nil
	}},
	{"slow", 3, func(ctx context.Context, c *cluster, random *rand.Rand) (string, error) {
		c.proxy.slow(time.Duration(50+random.IntN(450)) * time.Millisecond)
		defer c.proxy.slow(0)
		return "network slow, up to half a second each way", pause(ctx, 4*time.Second)
	}},
	{"silence", 2, func(ctx context.Context, c *cluster, _ *rand.Rand) (string, error) {
		defer c.proxy.silence()()
		return "network silent for 4 seconds", pause(ctx, 4*time.Second)
	}},
	{"database", 2, func(ctx context.Context, c *cluster, _ *rand.Rand) (string, error) {
		if err := c.db.Down(); err != nil {
			return "", err
		}
		if err := pause(ctx, 2*time.Second); err != nil {
			return "", err
		}
		return "MariaDB killed and started again after 2 seconds", c.db.Up(ctx)
	}},
}

// kill ends an operator's process and starts it again.
func kill(_ context.Context, c *cluster, random *rand.Rand) (string, error) {
	r := c.replicas[random.IntN(len(c.replicas))]
	what := "operator killed that was on standby"
	if r.leads() {
		what = "operator killed that was the leader"
	}
	if err := r.kill(); err != nil {
		return "", err
	}
	return what, r.start()
}

// pick returns a random fault, in proportion to the weights.
func pick(random *rand.Rand) fault {
	var deck []fault
	for _, f := range faults {
		for range f.weight {
			deck = append(deck, f)
		}
	}
	return deck[random.IntN(len(deck))]
}
