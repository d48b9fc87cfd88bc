# The formula of Homebrew. hack/release.sh fills in what is in braces.
class Scaler < Formula
  desc "Measure how a service mesh's control plane scales"
  homepage "{{url}}"
  version "{{number}}"
  license "Apache-2.0"

  on_macos do
    on_intel do
      url "{{url}}/scaler-{{version}}-darwin-amd64.tar.gz"
      sha256 "{{sha256 darwin-amd64}}"
    end
    on_arm do
      url "{{url}}/scaler-{{version}}-darwin-arm64.tar.gz"
      sha256 "{{sha256 darwin-arm64}}"
    end
  end
  on_linux do
    on_intel do
      url "{{url}}/scaler-{{version}}-linux-amd64.tar.gz"
      sha256 "{{sha256 linux-amd64}}"
    end
    on_arm do
      url "{{url}}/scaler-{{version}}-linux-arm64.tar.gz"
      sha256 "{{sha256 linux-arm64}}"
    end
  end

  def install
    bin.install "scaler", "kubectl_complete-mesh_scaler"
    bin.install_symlink "scaler" => "kubectl-mesh_scaler"
    bash_completion.install "completion/scaler.bash" => "scaler"
    zsh_completion.install "completion/scaler.zsh" => "_scaler"
    fish_completion.install "completion/scaler.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/scaler version")
  end
end
