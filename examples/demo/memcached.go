package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/opblocks/opblocks/examples/internal/launch"
)

const (
	memcachedFolder = "examples/memcached/config"
	memcachedSample = memcachedFolder + "/samples/cache_v1_memcached.yaml"
)

// memcached shows the sample from its creation to its deletion.
func memcached(t *tour) {
	t.title("memcached: install the operator")
	t.say("This applies the CRD, the operator's ServiceAccount and its roles: all that 'make deploy' applies, except its Deployment and the conversion between v1 and v1alpha1.")
	t.kubectl("apply", "--server-side", "--kustomize", memcachedFolder+"/without-conversion", "--selector", "app.kubernetes.io/component!=manager")
	t.serve(memcachedFolder + "/crd/bases/*.yaml")
	t.say("The operator runs on this machine, with the permissions of its ServiceAccount.")
	t.runOperator("memcached", "memcached-system", "memcached-controller-manager")

	t.title("memcached: three pods")
	t.kubectl("create", "--filename", memcachedSample)
	t.until("3 of 3 pods are ready", ready("3/3"), "get", "memcached")
	t.until("there are a Deployment, a Service and three pods", children(3), "get", "deployments,services,pods")

	t.title("memcached: four pods")
	t.kubectl("patch", "memcached", "memcached-sample", "--type=merge", "--patch", `{"spec":{"size":4}}`)
	t.until("the Deployment is at 4/4", contains("4/4"), "get", "deploy")
	t.until("the status of generation 2 lists four nodes, sorted", nodes(4, 2), "get", "memcached", "memcached-sample", "--output=yaml")

	t.title("memcached: five pods, by kubectl scale")
	t.kubectl("scale", "memcached/memcached-sample", "--replicas=5")
	t.until("5 of 5 pods are ready", ready("5/5"), "get", "memcached")

	t.title("memcached: somebody else changes the Deployment")
	image := []string{"get", "deployment", "memcached-sample", "--output=wide"}
	t.kubectl(image...)
	t.kubectl("set", "image", "deployment/memcached-sample", "memcached=memcached:1.4")
	t.until("the operator restores the image", contains("memcached:1.6-alpine"), image...)
	t.kubectl("delete", "deployment", "memcached-sample")
	t.until("the operator has created the Deployment again, at 5/5", contains("5/5"), "get", "deploy")
	t.until("5 of 5 pods are ready", ready("5/5"), "get", "memcached")

	t.title("memcached: what the next version would change")
	t.say("This builds an operator with another default image. With -plan it says by reads and dry runs what it would change, and changes nothing.")
	t.planNext("memcached", launch.SourceEdit{File: "examples/memcached/controller/deployment.go", Old: "memcached:1.6-alpine", New: "memcached:1.7-alpine"},
		containsAll("Memcached: 1 of 1 change.", `"memcached:1.6-alpine" → "memcached:1.7-alpine"`, "its pods are replaced"))

	t.title("memcached: an image that cannot be pulled")
	t.kubectl("patch", "memcached", "memcached-sample", "--type=merge", "--patch", `{"spec":{"image":"registry.invalid/memcached:1.6"}}`)
	t.until("the reason of the pods is shown", contains("ImagePullBackOff"), "get", "memcached")
	t.until("the message names the image", contains("registry.invalid/memcached:1.6"),
		"get", "memcached", "memcached-sample", `--output=jsonpath={.status.conditions[?(@.type=="Available")].message}`)
	t.kubectl("patch", "memcached", "memcached-sample", "--type=merge", "--patch", `{"spec":{"image":null}}`)
	t.until("all pods are ready again", ready("5/5"), "get", "memcached")

	t.title("memcached: delete the sample")
	t.kubectl("delete", "memcached", "memcached-sample")
	t.until("only the Service of the API server itself is left", nothing, "get", "memcached,deployments,replicasets,pods,services")
}

// serve waits until the API server serves the CRDs that were applied and the garbage collector knows them. Without serve, the
// garbage collector needs up to half a minute.
func (t *tour) serve(pattern string) {
	if t.err != nil {
		return
	}
	paths, err := filepath.Glob(pattern)
	t.err = errors.Join(err, t.cp.InstallCRDs(t.ctx, paths...))
}

// ready checks for a table row with a number of available pods and Ready.
func ready(available string) func(string) error {
	return func(out string) error {
		for line := range strings.Lines(out) {
			if fields := strings.Fields(line); len(fields) > 3 && fields[2] == available && fields[3] == "True" {
				return nil
			}
		}
		return fmt.Errorf("no row contains %s and True", available)
	}
}

// children checks for the children of the sample, with a number of running pods.
func children(pods int) func(string) error {
	return func(out string) error {
		got, running := strings.Count(out, "pod/memcached-sample-"), strings.Count(out, "Running")
		if got != pods || running != pods {
			return fmt.Errorf("%d of %d pods are Running, want %d", running, got, pods)
		}
		return errors.Join(contains("deployment.apps/memcached-sample")(out), contains("service/memcached-sample")(out))
	}
}

// nodes checks for a status of a generation with a number of nodes, sorted.
func nodes(count int, generation int64) func(string) error {
	return func(out string) error {
		var m struct {
			Metadata struct{ Generation int64 }
			Status   struct {
				ObservedGeneration int64
				Nodes              []string
			}
		}
		if err := yaml.Unmarshal([]byte(out), &m); err != nil {
			return err
		}
		if m.Metadata.Generation != generation || m.Status.ObservedGeneration != generation {
			return fmt.Errorf("the generation is %d, and that of the status %d", m.Metadata.Generation, m.Status.ObservedGeneration)
		}
		if len(m.Status.Nodes) != count || !slices.IsSorted(m.Status.Nodes) {
			return fmt.Errorf("status.nodes is %v", m.Status.Nodes)
		}
		return nil
	}
}
