package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// fault is a kind of fault.
type fault struct {
	name   string
	weight int
	// inject injects the fault, waits until it is over, and returns a description for the report.
	inject func(ctx context.Context, c *cluster, users *users, random *rand.Rand) (what string, err error)
}

var faults = []fault{
	{"kill", 18, kill},
	{"API server", 2, func(ctx context.Context, c *cluster, _ *users, _ *rand.Rand) (string, error) {
		return "kube-apiserver killed and started again", c.cp.RestartAPIServer(ctx)
	}},
	{"etcd", 1, func(ctx context.Context, c *cluster, _ *users, _ *rand.Rand) (string, error) {
		return "etcd killed and started again", c.cp.RestartEtcd(ctx)
	}},
	{"reset", 3, func(_ context.Context, c *cluster, _ *users, _ *rand.Rand) (string, error) {
		c.proxy.reset()
		return "all connections of the operators reset", nil
	}},
	{"slow", 3, func(ctx context.Context, c *cluster, _ *users, random *rand.Rand) (string, error) {
		c.proxy.slow(time.Duration(50+random.IntN(450)) * time.Millisecond)
		defer c.proxy.slow(0)
		return "network slow, up to half a second each way", pause(ctx, 4*time.Second)
	}},
	{"silence", 2, func(ctx context.Context, c *cluster, _ *users, _ *rand.Rand) (string, error) {
		defer c.proxy.silence()()
		return "network silent for 4 seconds", pause(ctx, 4*time.Second)
	}},
	{"database", 2, func(ctx context.Context, c *cluster, _ *users, _ *rand.Rand) (string, error) {
		if err := c.db.Down(); err != nil {
			return "", err
		}
		if err := pause(ctx, 2*time.Second); err != nil {
			return "", err
		}
		return "MariaDB killed and started again after 2 seconds", c.db.Up(ctx)
	}},
	{"database hangs", 2, func(ctx context.Context, c *cluster, _ *users, _ *rand.Rand) (string, error) {
		if err := c.db.Freeze(); err != nil {
			return "", err
		}
		return "MariaDB frozen for 8 seconds", errors.Join(pause(ctx, 8*time.Second), c.db.Thaw())
	}},
	{"frozen leader", 1, freezeLeader},
	{"restore", 1, restore},
}

// frozenTime is longer than the lease of a leader, so another replica takes the lease.
const frozenTime = 20 * time.Second

// freezeLeader suspends the leader of an operator until another replica leads, and lets it go on: it does not know yet that it does not
// lead any more.
func freezeLeader(ctx context.Context, c *cluster, _ *users, random *rand.Rand) (string, error) {
	var leaders []*replica
	for _, r := range c.replicas {
		if r.leads() {
			leaders = append(leaders, r)
		}
	}
	if len(leaders) == 0 {
		return "no leader to freeze", nil
	}
	r := leaders[random.IntN(len(leaders))]
	if err := r.process.Suspend(); err != nil {
		return "", err
	}
	return "leader frozen until another replica leads", errors.Join(pause(ctx, frozenTime), r.process.Resume())
}

// restore brings etcd back as it was some seconds before, as an administrator does with a backup: all that caches objects is stopped and started
// again. Then the users put their objects once more.
func restore(ctx context.Context, c *cluster, users *users, _ *rand.Rand) (string, error) {
	due := users.schedules.snapshot()
	if err := c.cp.SaveEtcd(ctx); err != nil {
		return "", err
	}
	if err := pause(ctx, 10*time.Second); err != nil {
		return "", err
	}
	users.mu.Lock()
	defer users.mu.Unlock()
	for _, r := range c.replicas {
		if err := r.kill(); err != nil {
			return "", err
		}
	}
	if err := c.cp.RestoreEtcd(ctx); err != nil {
		return "", err
	}
	if err := errors.Join(users.schedules.restored(ctx, due), users.accounts.restored(ctx)); err != nil {
		return "", err
	}
	for _, r := range c.replicas {
		if err := r.start(); err != nil {
			return "", err
		}
	}
	return "etcd restored from a copy, and all operators started again", users.repeat(ctx)
}

// kill ends an operator's process and starts it again.
func kill(_ context.Context, c *cluster, _ *users, random *rand.Rand) (string, error) {
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

// picker picks random faults: each kind once, and then in proportion to the weights.
type picker struct {
	random *rand.Rand
	first  []int // the kinds that were not picked yet, in a random order
	deck   []fault
}

func newPicker(random *rand.Rand) *picker {
	p := &picker{random: random, first: random.Perm(len(faults))}
	for _, f := range faults {
		for range f.weight {
			p.deck = append(p.deck, f)
		}
	}
	return p
}

func (p *picker) pick() fault {
	if len(p.first) > 0 {
		f := faults[p.first[0]]
		p.first = p.first[1:]
		return f
	}
	return p.deck[p.random.IntN(len(p.deck))]
}
