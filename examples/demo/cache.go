package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

const (
	cacheFolder = "examples/cache/config"
	cacheSample = cacheFolder + "/samples/store_v1alpha1_cache.yaml"
)

// cache shows children that depend on each other, what is generated, what grows, what runs by schedule, and what stays.
func cache(t *tour) {
	t.title("cache: install the operator")
	t.kubectl("apply", "--server-side", "--kustomize", cacheFolder+"/default", "--selector", "app.kubernetes.io/component!=manager")
	t.serve(cacheFolder + "/crd/bases/*.yaml")
	t.runOperator("cache", "cache-system", "cache-controller-manager", "--min-backup-interval=5s")

	t.title("cache: two pods, and a password")
	t.kubectl("create", "--filename", cacheSample)
	t.until("two pods are ready", cacheReady(2), "get", "caches")
	t.until("all that the pods need is there", containsAll("configmap/cache-sample-settings", "secret/cache-sample-password", "service/cache-sample",
		"poddisruptionbudget.policy/cache-sample", "networkpolicy.networking.k8s.io/cache-sample"),
		"get", "configmaps,secrets,services,poddisruptionbudgets,networkpolicies")
	t.until("the password was generated", containsAll("password:  32 bytes"), "describe", "secret", "cache-sample-password")

	t.title("cache: a change of the settings replaces the pods")
	before := t.cachePods("two pods run", func([]string) error { return nil })
	t.setCache(`{"spec":{"settings":{"maxmemory":"200mb"}}}`)
	after := t.cachePods("they were replaced", func(now []string) error { return shared(0, before, now) })

	t.title("cache: the volumes grow, and the pods stay")
	t.setCache(`{"spec":{"storage":"2Gi"}}`)
	t.until("each volume has 2Gi", contains("2Gi 2Gi"), "get", "persistentvolumeclaims", "cache-data-cache-sample-0", "cache-data-cache-sample-1",
		"--output=jsonpath={.items[*].spec.resources.requests.storage}")
	t.until("the StatefulSet has 2Gi, too", contains("2Gi"), "get", "statefulset", "cache-sample",
		"--output=jsonpath={.spec.volumeClaimTemplates[*].spec.resources.requests.storage}")
	t.cachePods("they are the same pods", func(now []string) error { return shared(2, after, now) })
	t.until("all are ready", cacheReady(2), "get", "caches")

	t.title("cache: backups by schedule")
	t.setCache(`{"spec":{"backup":{"schedule":"@every 5s"}}}`)
	t.until("a backup has succeeded", present, "get", "cache", "cache-sample", "--output=jsonpath={.status.backup.lastSuccessfulTime}")
	t.until("its Job is complete", contains("Complete"), "get", "jobs")

	t.title("cache: a priority, by a PriorityClass of its own")
	t.setCache(`{"spec":{"priority":1000}}`)
	t.until("the class is in no namespace; it goes with the Cache", contains("1000"), "get", "priorityclass", "default.cache-sample")
	t.until("the pods have the priority", contains("1000 1000"), "get", "pods", "--selector=app.kubernetes.io/name=cache", "--output=jsonpath={.items[*].spec.priority}")

	repairedCache(t)
	deletedCache(t)
}

// repairedCache shows what the operator does about changes by others.
func repairedCache(t *tour) {
	t.title("cache: somebody else changes the children")
	t.kubectl("scale", "statefulset/cache-sample", "--replicas=7")
	t.kubectl("delete", "poddisruptionbudget", "cache-sample")
	t.until("the operator restores them", containsAll("2 default.cache-sample"), "get", "statefulset", "cache-sample",
		"--output=jsonpath={.spec.replicas} {.spec.template.spec.priorityClassName}")
	t.until("the budget is back", contains("cache-sample"), "get", "poddisruptionbudgets")

	t.title("cache: Prometheus' operator is installed later")
	t.until("the kind is not served yet", contains("KindNotServed"), "get", "cache", "cache-sample", `--output=jsonpath={.status.conditions[?(@.type=="Monitored")].reason}`)
	definition := t.definition()
	t.kubectl("apply", "--filename", definition)
	t.serve(definition)
	t.until("there is a ServiceMonitor", contains("cache-sample"), "get", "servicemonitors")
}

// deletedCache shows what stays.
func deletedCache(t *tour) {
	t.title("cache: delete the sample")
	t.kubectl("delete", "cache", "cache-sample")
	t.until("the volume with the backups is kept, and nothing else", func(out string) error {
		backups := "persistentvolumeclaim/cache-sample-backups"
		return errors.Join(contains(backups)(out), nothing(without(out, backups, "configmap/kube-root-ca.crt")))
	}, "get", "caches,statefulsets,pods,services,configmaps,secrets,jobs,poddisruptionbudgets,networkpolicies,servicemonitors,persistentvolumeclaims")
	t.until("its class is gone", func(out string) error {
		if strings.Contains(out, "cache-sample") {
			return errors.New("it is still there")
		}
		return nil
	}, "get", "priorityclasses")

	t.title("cache: create it again")
	t.kubectl("create", "--filename", cacheSample)
	t.until("it takes its backups over", contains("KindServed True"), "get", "cache", "cache-sample",
		`--output=jsonpath={.status.conditions[?(@.type=="Monitored")].reason} {.status.conditions[?(@.type=="BackupVolume")].status}`)
	t.setCache(`{"spec":{"keepBackups":false}}`)
	t.until("the backups go with it now", contains("cache-sample"), "get", "persistentvolumeclaim", "cache-sample-backups", "--output=jsonpath={.metadata.ownerReferences[*].name}")
	t.kubectl("delete", "cache", "cache-sample")
	t.until("nothing is left", nothing, "get", "caches,statefulsets,pods,jobs,persistentvolumeclaims")
}

// setCache patches the sample.
func (t *tour) setCache(patch string) {
	t.kubectl("patch", "cache", "cache-sample", "--type=merge", "--patch", patch)
}

// cachePods waits until both pods of the sample run and check accepts their UIDs, and returns these.
func (t *tour) cachePods(expected string, check func(uids []string) error) (uids []string) {
	t.until(expected, func(out string) error {
		if uids = strings.Fields(out); len(uids) != 2 {
			return fmt.Errorf("%d pods run, want 2", len(uids))
		}
		return check(uids)
	}, "get", "pods", "--selector=app.kubernetes.io/name=cache", "--field-selector=status.phase=Running", "--output=jsonpath={.items[*].metadata.uid}")
	return uids
}

// shared checks how many texts two lists have in common.
func shared(want int, before, now []string) error {
	got := 0
	for _, one := range now {
		for _, other := range before {
			if one == other {
				got++
			}
		}
	}
	if got != want {
		return fmt.Errorf("%d of them are the same as before, want %d", got, want)
	}
	return nil
}

// cacheReady checks for the table row of the sample with a number of ready pods.
func cacheReady(pods int) func(string) error {
	return row(fmt.Sprintf("cache-sample %d %d True", pods, pods))
}

// without drops the lines that begin with one of some texts.
func without(out string, beginnings ...string) string {
	var kept strings.Builder
	for line := range strings.Lines(out) {
		drop := false
		for _, beginning := range beginnings {
			drop = drop || strings.HasPrefix(line, beginning)
		}
		if !drop {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// serviceMonitors is a definition of the kind of Prometheus' operator, without its schema.
const serviceMonitors = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: servicemonitors.monitoring.coreos.com
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: ServiceMonitor, listKind: ServiceMonitorList, plural: servicemonitors, singular: servicemonitor}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// definition writes the definition of ServiceMonitors to a file, and returns its path.
func (t *tour) definition() (path string) {
	if t.err != nil {
		return ""
	}
	path = t.file("servicemonitors.yaml")
	t.err = os.WriteFile(path, []byte(serviceMonitors), 0o600)
	return path
}
