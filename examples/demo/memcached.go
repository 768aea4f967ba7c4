package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	memcachedFolder = "examples/memcached/config"
	memcachedSample = memcachedFolder + "/samples/cache_v1alpha1_memcached.yaml"
)

// memcached tells the life of its sample.
func memcached(t *tour) {
	t.title("memcached: install the operator")
	t.say("The CRD, the operator's ServiceAccount and its roles: what 'make deploy' applies, but for the operator's own Deployment.")
	t.kubectl("apply", "--server-side", "--kustomize", memcachedFolder+"/default", "--selector", "app.kubernetes.io/component!=manager")
	t.serve(memcachedFolder + "/crd/bases/*.yaml")
	t.say("The operator runs on this machine, with the rights of its ServiceAccount.")
	t.runOperator("memcached", "memcached-system", "memcached-controller-manager")

	t.title("memcached: three pods")
	t.kubectl("create", "--filename", memcachedSample)
	t.until("3 of 3 pods are ready", ready("3/3"), "get", "memcached")
	t.until("a Deployment, a Service and three pods are there", children(3), "get", "deployments,services,pods")

	t.title("memcached: four")
	t.kubectl("patch", "memcached", "memcached-sample", "--type=merge", "--patch", `{"spec":{"size":4}}`)
	t.until("the Deployment is at 4/4", contains("4/4"), "get", "deploy")
	t.until("the status lists four nodes, sorted, of generation 2", nodes(4, 2), "get", "memcached", "memcached-sample", "--output=yaml")

	t.title("memcached: five, through the scale subresource")
	t.kubectl("scale", "memcached/memcached-sample", "--replicas=5")
	t.until("5 of 5 pods are ready", ready("5/5"), "get", "memcached")

	t.title("memcached: somebody interferes")
	image := []string{"get", "deployment", "memcached-sample", "--output=wide"}
	t.kubectl(image...)
	t.kubectl("set", "image", "deployment/memcached-sample", "memcached=memcached:1.4")
	t.until("the image is put right", contains("memcached:1.6-alpine"), image...)
	t.kubectl("delete", "deployment", "memcached-sample")
	t.until("the Deployment is back, at 5/5", contains("5/5"), "get", "deploy")
	t.until("5 of 5 pods are ready", ready("5/5"), "get", "memcached")

	t.title("memcached: an image that cannot be pulled")
	t.kubectl("patch", "memcached", "memcached-sample", "--type=merge", "--patch", `{"spec":{"image":"registry.invalid/memcached:1.6"}}`)
	t.until("the reason is that of the pods", contains("ImagePullBackOff"), "get", "memcached")
	t.until("the condition says which image", contains("registry.invalid/memcached:1.6"),
		"get", "memcached", "memcached-sample", `--output=jsonpath={.status.conditions[?(@.type=="Available")].message}`)
	t.kubectl("patch", "memcached", "memcached-sample", "--type=merge", "--patch", `{"spec":{"image":null}}`)
	t.until("it is healed", ready("5/5"), "get", "memcached")

	t.title("memcached: the end")
	t.kubectl("delete", "memcached", "memcached-sample")
	t.until("nothing is left but the API server's own Service", nothing, "get", "memcached,deployments,replicasets,pods,services")
}

// serve returns when the API server serves the CRDs that were applied, and the garbage collector knows them, which it
// would by itself within half a minute.
func (t *tour) serve(pattern string) {
	if t.err != nil {
		return
	}
	paths, err := filepath.Glob(pattern)
	t.err = errors.Join(err, t.cp.InstallCRDs(t.ctx, paths...))
}

// ready is a table row with this many pods available, and Ready.
func ready(available string) func(string) error {
	return func(out string) error {
		for line := range strings.Lines(out) {
			if fields := strings.Fields(line); len(fields) > 3 && fields[2] == available && fields[3] == "True" {
				return nil
			}
		}
		return fmt.Errorf("no row says %s and True", available)
	}
}

func contains(text string) func(string) error {
	return func(out string) error {
		if !strings.Contains(out, text) {
			return fmt.Errorf("it does not say %s", text)
		}
		return nil
	}
}

// children are what a Memcached owns, with so many pods running.
func children(pods int) func(string) error {
	return func(out string) error {
		got, running := strings.Count(out, "pod/memcached-sample-"), strings.Count(out, "Running")
		if got != pods || running != pods {
			return fmt.Errorf("of %d pods %d are Running", got, running)
		}
		return errors.Join(contains("deployment.apps/memcached-sample")(out), contains("service/memcached-sample")(out))
	}
}

func nothing(out string) error {
	for line := range strings.Lines(out) {
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "NAME ") && !strings.HasPrefix(line, "service/kubernetes ") {
			return fmt.Errorf("this is left: %s", strings.TrimSpace(line))
		}
	}
	return nil
}

// nodes is a Memcached whose status is up to date, with that many nodes in order.
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
			return fmt.Errorf("it is generation %d, and the status of %d", m.Metadata.Generation, m.Status.ObservedGeneration)
		}
		if len(m.Status.Nodes) != count || !slices.IsSorted(m.Status.Nodes) {
			return fmt.Errorf("the nodes are %v", m.Status.Nodes)
		}
		return nil
	}
}
