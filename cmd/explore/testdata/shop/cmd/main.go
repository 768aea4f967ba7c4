// The manager of the operator.
package main

import (
	"flag"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"

	examplev1alpha1 "example.com/shop/api/v1alpha1"
	"example.com/shop/internal/controller"
)

const prefix = "shop-"

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(examplev1alpha1.AddToScheme(scheme))
}

func main() {
	web := flag.String("web", "web:1", "the image")
	flag.Parse()
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme})
	if err != nil {
		os.Exit(1)
	}
	if err := (&controller.ShopReconciler{
		Client:   mgr.GetClient(),
		Scheme:   mgr.GetScheme(),
		Recorder: mgr.GetEventRecorder("shop-controller"),
		Images:   controller.Images{Web: *web, Cache: "cache:1"},
		Timeout:  5 * time.Second,
		Prefix:   prefix,
		Region:   os.Getenv("REGION"),
	}).SetupWithManager(mgr); err != nil {
		os.Exit(1)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}
