//! The GPUs of this machine: who tells of them, which of them a server uses, and what they do now. Nothing here may be
//! called from an async task: drivers take their time.

pub mod amd;
mod amd_metrics;
mod kfd;
mod library;
pub mod nvml;
pub mod smi;
pub mod used;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use speedmatrix_shared::gpu::{GpuReading, Traffic};

use self::nvml::Nvml;

/// Time between two readings of a driver …
const DRIVER_EVERY: Duration = Duration::from_millis(250);
/// … and of a program, which takes some of the machine each time.
const PROGRAM_EVERY: Duration = Duration::from_millis(500);

/// Who tells of the GPUs.
#[derive(Debug)]
pub enum Source {
    /// NVIDIA's library.
    Nvml(Box<dyn Nvml>),
    /// NVIDIA's program.
    Smi,
    /// AMD's driver: the folders of its cards.
    Amd(Vec<PathBuf>),
    /// AMD's program.
    AmdSmi,
}

/// Versions of what tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Versions {
    /// Of the driver.
    pub driver: Option<String>,
    /// Highest CUDA version that it serves.
    pub cuda: Option<String>,
}

impl Source {
    /// The one that tells of this machine's GPUs, with what it tells; `None` where nobody does.
    pub fn find() -> Option<(Self, Vec<GpuReading>)> {
        let nvml = || library::Installed::load().ok().map(|library| Self::Nvml(Box::new(library)));
        let amd = || Some(Self::amd(Path::new(amd::CARDS)));
        let candidates: [&dyn Fn() -> Option<Self>; 4] = [&nvml, &|| Some(Self::Smi), &amd, &|| Some(Self::AmdSmi)];
        candidates.into_iter().find_map(|candidate| {
            let source = candidate()?;
            let gpus = source.all();
            (!gpus.is_empty()).then_some((source, gpus))
        })
    }

    /// AMD's cards below a folder like `/sys/class/drm`.
    pub fn amd(cards: &Path) -> Self {
        Self::Amd(amd::devices(cards))
    }

    /// All that every GPU tells.
    pub fn all(&self) -> Vec<GpuReading> {
        match self {
            Self::Nvml(nvml) => {
                let count = nvml.gpus().unwrap_or(0).min(nvml::MOST_GPUS);
                (0..count).map(|index| nvml::reading(nvml.as_ref(), index)).collect()
            }
            Self::Smi => smi::ask(),
            Self::Amd(devices) => (0..).zip(devices).map(|(index, device)| amd::reading(device, index)).collect(),
            Self::AmdSmi => amd::ask(),
        }
    }

    /// What these GPUs do now.
    fn moments(&self, indexes: &[u32]) -> Vec<GpuReading> {
        match self {
            Self::Nvml(nvml) => indexes.iter().map(|index| nvml::moment(nvml.as_ref(), *index)).collect(),
            Self::Smi | Self::Amd(_) | Self::AmdSmi => {
                let mut gpus = self.all();
                gpus.retain(|gpu| indexes.contains(&gpu.index));
                gpus
            }
        }
    }

    /// Whether another than tells the rest must be asked for the bytes over the links between these GPUs.
    fn asks_for_links(&self, indexes: &[u32]) -> bool {
        match self {
            Self::Nvml(nvml) => indexes.iter().any(|index| nvml.has_links(*index)),
            Self::Smi => true,
            Self::Amd(_) | Self::AmdSmi => false,
        }
    }

    /// The processes that compute on each GPU.
    pub fn computing(&self, gpus: &[GpuReading]) -> BTreeMap<u32, Vec<u32>> {
        match self {
            Self::Nvml(nvml) => gpus.iter().map(|gpu| (gpu.index, nvml::processes(nvml.as_ref(), gpu.index))).collect(),
            Self::Smi => {
                let mut by_uuid = smi::processes();
                let own = |gpu: &GpuReading| Some((gpu.index, by_uuid.remove(gpu.uuid.as_ref()?)?));
                gpus.iter().filter_map(own).collect()
            }
            Self::Amd(devices) => kfd::computing(Path::new(kfd::KFD), devices),
            Self::AmdSmi => BTreeMap::new(),
        }
    }

    /// Versions of what tells.
    pub fn versions(&self) -> Versions {
        match self {
            Self::Nvml(nvml) => Versions {
                driver: nvml.driver().ok(),
                cuda: nvml.cuda().ok().map(|number| format!("{}.{}", number / 1_000, number % 1_000 / 10)),
            },
            Self::Smi => Versions { driver: smi::driver(), cuda: None },
            Self::Amd(_) | Self::AmdSmi => Versions::default(),
        }
    }

    const fn every(&self) -> Duration {
        match self {
            Self::Nvml(_) | Self::Amd(_) => DRIVER_EVERY,
            Self::Smi | Self::AmdSmi => PROGRAM_EVERY,
        }
    }
}

/// The GPUs that a server uses, to be looked at while it is measured.
#[derive(Debug)]
pub struct Watched {
    source: Source,
    /// As they were when they were chosen.
    pub(crate) gpus: Vec<GpuReading>,
    indexes: Vec<u32>,
    asks_for_links: bool,
}

impl Watched {
    /// These GPUs of a source; `None` if there are none.
    pub fn new(source: Source, gpus: Vec<GpuReading>) -> Option<Self> {
        let indexes: Vec<u32> = gpus.iter().map(|gpu| gpu.index).collect();
        let asks_for_links = source.asks_for_links(&indexes);
        (!indexes.is_empty()).then_some(Self { source, gpus, indexes, asks_for_links })
    }

    /// What they do now. One that is not told of any more is lost.
    pub(crate) fn look(&self) -> Vec<GpuReading> {
        self.source.moments(&self.indexes)
    }

    /// Bytes over the links between them, where looks do not tell; a program is asked, at its own pace.
    pub(crate) fn look_at_links(&self) -> BTreeMap<u32, Traffic> {
        let mut told = if self.asks_for_links { smi::links() } else { BTreeMap::new() };
        told.retain(|index, _| self.indexes.contains(index));
        told
    }

    /// Time between two looks at the links.
    pub(crate) const fn links_every() -> Duration {
        PROGRAM_EVERY
    }

    /// Time between two looks.
    pub(crate) const fn every(&self) -> Duration {
        self.source.every()
    }
}
