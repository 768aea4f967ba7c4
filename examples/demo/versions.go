package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/opblocks/opblocks/examples/internal/launch"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

const (
	formerDefinition = "examples/memcached/test/testdata/crd_v1alpha1_only.yaml"
	formerSample     = "examples/memcached/test/testdata/v1alpha1.yaml"
	definitionName   = "memcacheds.cache.example.com"
)

// versions shows how Memcached gets from v1alpha1 alone to v1 alone.
func versions(t *tour) {
	t.title("memcached, from v1alpha1 to v1: the operator that knew v1alpha1 alone")
	t.say("This ends the operator, and begins again with its former CRD. The former operator is built from the present source, with the field memoryMB in place of memory.")
	t.endOperator()
	t.kubectl("delete", "customresourcedefinition", definitionName)
	t.kubectl("apply", "--server-side", "--filename", formerDefinition)
	t.serve(formerDefinition)
	t.runFormer()
	t.kubectl("create", "--filename", formerSample)
	t.until("3 of 3 pods are ready", ready("3/3"), "get", "memcacheds.v1alpha1.cache.example.com") // kubectl remembers the former version for six hours
	command := []string{"get", "deployment", "memcached-sample", "--output=jsonpath={.spec.template.spec.containers[0].command}"}
	t.until("memcached has 100 MB", contains(`"-m=100"`), command...)

	t.title("memcached, from v1alpha1 to v1: an operator that serves both")
	t.say("In a cluster cert-manager makes the certificate, and 'make deploy' does all of this. Here the API server calls the operator on this machine.")
	t.endOperator()
	t.kubectl("apply", "--server-side", "--filename", memcachedFolder+"/webhook/migration_role.yaml")
	t.runConverting()
	t.until("v1 has the memory as a quantity", contains("memory: 100Mi"), "get", "memcacheds.v1.cache.example.com", "memcached-sample", "--output=yaml")
	t.until("v1alpha1 is still served, and has it in MB", contains("memoryMB: 100"), "get", "memcacheds.v1alpha1.cache.example.com", "memcached-sample", "--output=yaml")
	t.until("memcached has 100 MB as before", contains(`"-m=100"`), command...)
	t.until("the Deployment has the new version of its owner", is("cache.example.com/v1"), "get", "deployment", "memcached-sample",
		"--output=jsonpath={.metadata.ownerReferences[0].apiVersion}")
	t.until("no pod was replaced: there is one ReplicaSet", rows(1), "get", "replicasets", "--no-headers")

	t.title("memcached, from v1alpha1 to v1: the storage migration")
	t.say("The operator asks the cluster to write each object once, so that etcd has none in v1alpha1 any more. In a cluster that does not do it, the operator does.")
	t.changeDuringMigration()
	t.until("all objects are stored in v1", is(`["v1"]`), "get", "customresourcedefinition", definitionName, "--output=jsonpath={.status.storedVersions}")

	t.title("memcached, from v1alpha1 to v1: v1alpha1 is removed")
	t.kubectl("patch", "customresourcedefinition", definitionName, "--type=json",
		`--patch=[{"op":"test","path":"/spec/versions/1/name","value":"v1alpha1"},{"op":"remove","path":"/spec/versions/1"}]`)
	t.kubectl("scale", "memcached/memcached-sample", "--replicas=2")
	t.until("2 of 2 pods are ready", ready("2/2"), "get", "memcached")
	t.kubectl("delete", "memcached", "memcached-sample")
	t.until("only the Service of the API server itself is left", nothing, "get", "memcached,deployments,replicasets,pods,services")
}

// runFormer builds the operator of before v1, and runs it.
func (t *tour) runFormer() {
	if t.err != nil {
		return
	}
	folder := t.file("former")
	if t.err = os.Mkdir(folder, 0o700); t.err != nil {
		return
	}
	overlay, err := launch.Overlay(folder, launch.MemcachedV1alpha1()...)
	if err != nil {
		t.err = err
		return
	}
	program := t.file("memcached-operator-former")
	if t.err = launch.Build(t.ctx, "memcached", program, "-overlay="+overlay); t.err == nil {
		t.run("memcached-operator-former", program, "memcached-system", "memcached-controller-manager")
	}
}

// runConverting installs both versions with a conversion webhook that the API server finds on this machine, and runs the operator, which serves it.
func (t *tour) runConverting() {
	if t.err != nil {
		return
	}
	webhooks, err := t.cp.InstallWebhooks(t.ctx, controlplane.WebhookOptions{CRDs: []string{memcachedFolder + "/crd/bases"}})
	if err != nil {
		t.err = err
		return
	}
	options := webhooks.Options()
	t.runOperator("memcached", "memcached-system", "memcached-controller-manager",
		"--webhook-cert-dir="+options.CertDir, fmt.Sprintf("--webhook-bind-address=%s:%d", options.Host, options.Port))
}

// changeDuringMigration changes the Memcached as soon as the operator has asked the cluster to migrate. If the cluster does not migrate, as before
// Kubernetes 1.37, it does nothing.
func (t *tour) changeDuringMigration() {
	if t.err != nil {
		return
	}
	served, err := t.cp.Kubectl(t.ctx, "api-resources", "--api-group=storagemigration.k8s.io", "--output=name")
	if err != nil || served == "" {
		t.err = err
		return
	}
	t.until("the operator has asked for it", present, "get", "storageversionmigration", definitionName, "--output=jsonpath={.status.resourceVersion}")
	t.say("The cluster begins when its garbage collector has seen a change that is newer than this resource version. Without one, that takes a minute or two.")
	t.kubectl("annotate", "memcached", "memcached-sample", "example.com/note=written in v1")
}

// endOperator ends the operator that was started last.
func (t *tour) endOperator() {
	if t.err != nil {
		return
	}
	last := len(t.operators) - 1
	if last < 0 {
		t.err = errors.New("no operator runs")
		return
	}
	t.err = t.operators[last].Kill()
	t.operators = t.operators[:last]
}

// rows checks for a number of lines.
func rows(want int) func(string) error {
	return func(out string) error {
		if got := len(strings.Split(strings.TrimSpace(out), "\n")); got != want {
			return fmt.Errorf("there are %d rows, want %d", got, want)
		}
		return nil
	}
}
